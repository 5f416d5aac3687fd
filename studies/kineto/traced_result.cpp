#include "studies/kineto/traced_result.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

#include "runtime/ops/operation_named.h"
#include "studies/kineto/rank_step.h"

namespace tandem::studies {
namespace {

constexpr const char* traced_backend = "torch.profiler";

/// What is recomputed, and gradients of weights, the CPU issues in autograd's backward as it does the rest.
Phase traced_phase(Phase phase) { return phase == Phase::forward || phase == Phase::optimizer ? phase : Phase::backward_input; }

void add_kind(std::vector<KindTime>& kinds, std::string name, Phase phase, double count, Seconds time) {
  const auto same = std::ranges::find_if(kinds, [&](const KindTime& kind) { return kind.name == name && kind.phase == phase; });
  if (same != kinds.end()) {
    same->count += count;
    same->time += time;
  } else {
    kinds.push_back({.name = std::move(name), .phase = phase, .count = count, .time = time});
  }
}

void sort_by_time(std::vector<KindTime>& kinds) { std::ranges::stable_sort(kinds, std::greater<>(), &KindTime::time); }

}  // namespace

bool holds_kineto_traces(const std::string& path) {
  if (std::filesystem::is_directory(path) || path.ends_with(".json.gz")) return true;
  if (!path.ends_with(".json")) return false;
  constexpr std::size_t head = 1 << 16;  // what stands before the events is short
  std::ifstream file(path, std::ios::binary);
  std::string text(head, '\0');
  file.read(text.data(), static_cast<std::streamsize>(head));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.find("\"traceEvents\"") != std::string::npos;
}

StepResult traced_result(const std::string& path) {
  const std::vector<KinetoTrace> traces = read_kineto_traces(path);
  const double share = 1 / static_cast<double>(traces.size());
  StepResult result;
  const std::filesystem::path where(path);
  result.scenario = (where.has_filename() ? where : where.parent_path()).filename();
  result.gpus = traces.front().world_size;
  result.gpu = traces.front().device;
  result.run.backend = traced_backend;
  for (const KinetoTrace& trace : traces) {
    const RankStep step = step_of(trace, std::nullopt);
    result.step_time += share * step.time;
    result.parts.add(parts_of(step), share);
    for (const RankTask& task : step.tasks) {
      // The optimizer's kernels are a family by themselves, whose phase the CPU tells.
      const Phase phase = task.family == KernelFamily::optimizer ? Phase::optimizer : task.phase.value_or(Phase::forward);
      add_kind(result.kinds, task.kind(), traced_phase(phase), share, share * (task.end - task.start));
    }
  }
  sort_by_time(result.kinds);
  return in_words_of_traces(std::move(result));
}

bool is_traced(const StepResult& result) { return result.run.backend == traced_backend; }

StepResult in_words_of_traces(StepResult result) {
  result.parts.exposed[0] = std::accumulate(result.parts.exposed.begin(), result.parts.exposed.end(), Seconds{0});
  std::fill(result.parts.exposed.begin() + 1, result.parts.exposed.end(), 0);
  std::vector<KindTime> kinds;
  for (const KindTime& kind : result.kinds) {
    std::string name = kind.name.substr(0, kind.name.find(" ("));
    const auto op = operation_named(name);
    if (op && !is_communication(*op)) name = name_of(family_of(Task{.op = *op, .phase = kind.phase}));
    add_kind(kinds, std::move(name), traced_phase(kind.phase), kind.count, kind.time);
  }
  sort_by_time(kinds);
  result.kinds = std::move(kinds);
  result.stage_times.clear();
  return result;
}

}  // namespace tandem::studies
