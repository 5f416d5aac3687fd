#include "studies/step/step_result.h"

#include <algorithm>
#include <utility>

#include "runtime/base/parallel.h"
#include "sim/bounds.h"
#include "studies/step/graph_facts.h"
#include "studies/step/step_memory.h"

namespace tandem::studies {
namespace {

/// Names all models of GPUs that take part.
std::string gpu_names(const Dag& dag) {
  std::vector<std::string> names;
  for (const Rank& rank : dag.ranks) {
    const std::string& name = dag.devices[rank.device].name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::string all = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) all += " + " + names[i];
  return all;
}

/// Returns the mean over all ranks.
FlopsPerSecond mean_peak(const Dag& dag, DType precision) {
  FlopsPerSecond sum = 0;
  std::int64_t ranks = 0;
  for (const Rank& rank : dag.ranks) {
    sum += dag.devices[rank.device].peak[static_cast<std::size_t>(precision)] * static_cast<double>(rank.count);
    ranks += rank.count;
  }
  return sum / static_cast<double>(ranks);
}

Bytes smallest_memory(const Dag& dag) {
  Bytes smallest = dag.devices[dag.ranks.front().device].memory;
  for (const Rank& rank : dag.ranks) smallest = std::min(smallest, dag.devices[rank.device].memory);
  return smallest;
}

}  // namespace

std::size_t StepResult::fullest_stage() const {
  const auto fuller = [](const MemoryUse& a, const MemoryUse& b) { return a.peak() < b.peak(); };
  return static_cast<std::size_t>(std::max_element(stages.begin(), stages.end(), fuller) - stages.begin());
}

namespace {

void add_times(const Dag& dag, const Timeline& timeline, const GraphFacts& graph, DType precision, StepResult& result) {
  const double steps = dag.info.steps;
  result.hfu = graph.work.flops / steps / result.step_time / static_cast<double>(dag.info.gpus) / mean_peak(dag, precision);
  const std::vector<TimeParts> parts = time_parts(dag, timeline, graph.awaited);
  result.parts.add(mean_over_ranks(dag, parts), 1 / steps);
  for (const StageTime& sum : mean_by_stage(dag, parts)) {
    result.stage_times.push_back({.ranks = sum.ranks, .parts = {}});
    result.stage_times.back().parts.add(sum.parts, 1 / steps);
  }
  result.kinds = time_by_kind(dag, timeline);
  result.metrics = step_metrics(dag, timeline, graph, precision);
  result.tasks = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const std::size_t stages = dag.ranks[dag.tasks[id].rank].mirrored > 0 ? 2 : 1;
    result.tasks += stages * static_cast<std::size_t>(timeline.times(id));
  }
}

void add_memory(const Dag& dag, const Timeline& timeline, const GraphFacts& graph, StepResult& result,
                std::vector<MemoryOverTime>* over_time) {
  StepMemory memory = step_memory(dag, timeline, graph.memory, over_time != nullptr);
  if (over_time) *over_time = std::move(memory.over_time);
  result.stages = std::move(memory.by_stage);
  result.device_memory = memory.device;
  result.gpu_memory = smallest_memory(dag);
}

void add_bounds(const Dag& dag, const Timeline& timeline, GraphFacts& graph, StepResult& result) {
  result.lower_bound = graph.lower_bound / dag.info.steps;
  const sim::KernelTimes* const alone = result.is_simulated() ? &graph.alone : nullptr;
  result.upper_bound = upper_bound(dag, std::move(graph.replay), timeline, alone) / dag.info.steps;
}

}  // namespace

StepResult summarize(const Dag& dag, const Timeline& timeline, DType precision, const RunFacts& facts) {
  GraphFacts graph(dag, timeline);
  return summarize(dag, timeline, graph, precision, facts);
}

StepResult summarize(const Dag& dag, const Timeline& timeline, GraphFacts& graph, DType precision, const RunFacts& facts,
                     std::vector<MemoryOverTime>* over_time) {
  StepResult result;
  result.run = facts;
  const StepInfo& info = dag.info;
  const auto gpus = static_cast<double>(info.gpus);
  result.scenario = info.scenario;
  result.gpus = info.gpus;
  result.gpu = gpu_names(dag);
  result.gpu_architecture = name_of(dag.devices[dag.ranks.front().device].architecture);
  result.framework = dag.software.name;
  result.site = dag.devices[dag.ranks.front().device].site;
  result.tokens = info.tokens;
  result.sync_every = info.steps;
  result.step_time = timeline.makespan() / info.steps;
  const auto tokens = static_cast<double>(info.tokens);
  result.tokens_per_second_per_gpu = tokens / result.step_time / gpus;
  result.model_flops_per_gpu = info.model_flops_per_token * tokens / result.step_time / gpus;
  result.causal = info.causal;
  result.mfu = result.model_flops_per_gpu / mean_peak(dag, precision);
  result.experts = expert_balance(dag);
  if (info.documents.count > 0) result.documents = info.documents;
  result.rank_classes = dag.ranks.size();
  result.link_classes = dag.links.size();
  result.run.tasks_simulated = dag.tasks.size();
  // Each of these writes members of the result that no other reads; the first takes the longest, and has threads of its own.
  in_parallel(3, [&](std::size_t part) {
    if (part == 0) add_memory(dag, timeline, graph, result, over_time);
    if (part == 1) add_bounds(dag, timeline, graph, result);
    if (part == 2) add_times(dag, timeline, graph, precision, result);
  });
  return result;
}

}  // namespace tandem::studies
