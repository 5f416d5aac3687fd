#include "studies/recorded/graph_result.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/base/stopwatch.h"
#include "sim/bounds.h"
#include "sim/kernel_times.h"
#include "studies/step/step_result.h"
#include "traces/dag_file.h"

namespace tandem::studies {
namespace {

/// The time of a rank's kernels one after the other, as long as each takes with nothing beside it, and of what its host computes:
/// of kernels that were recorded the roofline of full peaks knows nothing.
Seconds longest_rank(const Dag& dag, const KernelTimes& alone) {
  std::vector<Seconds> compute(dag.ranks.size(), 0), on_host = compute;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (is_communication(task.op)) continue;
    if (task.stream == Stream::host) on_host[task.rank] += alone.of(id);
    if (task.stream == Stream::compute) compute[task.rank] += alone.of(id);
  }
  return std::max(std::ranges::max(compute), std::ranges::max(on_host));
}

}  // namespace

SimulatedGraph simulate_graph(Dag dag) {
  const Stopwatch stopwatch;
  SimulatedGraph graph{.dag = std::move(dag), .timeline = {}, .result = {}};
  const Dag& d = graph.dag;
  graph.timeline = simulate(d).timeline;
  const Timeline& timeline = graph.timeline;
  const double steps = d.info.steps;
  GraphResult& result = graph.result;
  result.name = d.info.scenario;
  result.gpus = d.info.gpus;
  result.gpu = d.devices[d.ranks.front().device].name;
  result.step_time = timeline.makespan() / steps;
  const KernelTimes alone(d);
  result.lower_bound = std::max(lower_bound(d), longest_rank(d, alone)) / steps;
  result.upper_bound = upper_bound(d, timeline, &alone) / steps;
  result.parts.add(mean_over_ranks(d, time_parts(d, timeline)), 1 / steps);
  result.overlap = communication_overlap(d, timeline);
  result.kinds = time_by_kind(d, timeline);
  result.rank_classes = d.ranks.size();
  result.link_classes = d.links.size();
  result.tasks = d.tasks.size();
  result.wall = stopwatch.elapsed();
  return graph;
}

SimulatedGraph simulate_graph(const std::string& path) { return simulate_graph(read_dag(path)); }

nlohmann::ordered_json to_json_object(const GraphResult& result) {
  nlohmann::ordered_json time = to_json_object(result.parts);
  // Of a trace that does not tell what its communication is for.
  if (result.parts.exposed_on(Axis::none) > 0) time["exposed"]["none"] = result.parts.exposed_on(Axis::none);
  return {{"kind", "graph"},
          {"scenario", result.name},
          {"gpus", result.gpus},
          {"gpu", result.gpu},
          {"step_time_s", result.step_time},
          {"bounds_s", {{"lower", result.lower_bound}, {"upper", result.upper_bound}}},
          {"time_s", std::move(time)},
          {"communication",
           {{"running_s", result.overlap.all.busy},
            {"hidden", result.overlap.all.busy > 0 ? nlohmann::ordered_json(result.overlap.all.hidden()) : nullptr}}},
          {"kinds", to_json_list(result.kinds)},
          {"run",
           {{"ranks", result.gpus},
            {"rank_classes", result.rank_classes},
            {"link_classes", result.link_classes},
            {"tasks", result.tasks},
            {"wall_s", result.wall}}}};
}

}  // namespace tandem::studies
