#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>

#include "cli/command.h"
#include "cli/executed_step.h"
#include "sim/simulate.h"

namespace tandem {
namespace {

struct KindTotals {
  std::size_t count = 0;
  Seconds simulated = 0;
  Seconds measured = 0;
};

std::string kind_of(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  std::string kind(operation(task.op).name);
  if (is_communication(task.op)) kind += fmt::format(" ({})", name_of(task.axis));
  return kind;
}

std::string table_by_kind(const Dag& dag, const Timeline& simulated, const Timeline& measured) {
  std::map<std::string, KindTotals> kinds;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    KindTotals& kind = kinds[kind_of(dag, id)];
    ++kind.count;
    kind.simulated += simulated.duration(id);
    kind.measured += measured.duration(id);
  }
  std::string out =
      fmt::format("  {:<28}{:>8}{:>16}{:>16}{:>14}\n", "kind of task", "count", "simulated ms", "measured ms", "sim/measured");
  for (const auto& [name, kind] : kinds) {
    out += fmt::format("  {:<28}{:>8}{:>16.3f}{:>16.3f}{:>14.2f}\n", name, kind.count, kind.simulated * 1e3, kind.measured * 1e3,
                       kind.simulated / kind.measured);
  }
  return out;
}

/// The tasks of each stream of each rank in the order in which they ran.
std::vector<std::vector<TaskId>> order_by_stream(const Dag& dag, const Timeline& timeline) {
  std::vector<std::vector<TaskId>> order(dag.ranks.size() * stream_count);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    order[dag.tasks[id].rank * stream_count + static_cast<std::size_t>(dag.tasks[id].stream)].push_back(id);
  }
  for (std::vector<TaskId>& tasks : order) {
    std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
      return std::pair(timeline.start[a], timeline.end[a]) < std::pair(timeline.start[b], timeline.end[b]);
    });
  }
  return order;
}

/// Prints each rank's order of tasks as a digest and whether both runs agree; returns whether all do.
bool compare_orders(const Dag& dag, const Timeline& simulated, const Timeline& measured, std::ostream& out) {
  const auto expected = order_by_stream(dag, simulated);
  const auto found = order_by_stream(dag, measured);
  bool all = true;
  out << "\nOrder of tasks, rank by rank\n";
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    std::size_t tasks = 0;
    std::size_t streams = 0;
    bool same = true;
    for (std::size_t s = rank * stream_count; s < (rank + 1) * stream_count; ++s) {
      tasks += expected[s].size();
      streams += expected[s].empty() ? 0 : 1;
      same = same && expected[s] == found[s];
    }
    out << fmt::format("  rank {:>3}{:>8} tasks on {} streams: {}\n", dag.ranks[rank].world_rank, tasks, streams,
                       same ? "the same order" : "DIFFERENT order");
    all = all && same;
  }
  return all;
}

}  // namespace

CLI::App* CrosscheckCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("crosscheck", "simulate and execute the same DAG, task by task");
  options.add_to(*command);
  backend.add_to(*command);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode CrosscheckCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  Outputs outputs(options);
  ExecutedStep step(scenario, options.scenario, backend, period_of(scenario), collectives == Collectives::steps);
  const SimulationRun simulated = simulate(step.dag(), collectives);
  const std::size_t kinds = step.verify_collectives();
  step.execute();

  StepResult result = step.result();
  result.warnings = scenario.warnings;
  result.run.collectives = name_of(collectives);
  outputs.write(result, {{"simulated", &step.dag(), &simulated.timeline}, {"measured", &step.dag(), &step.timeline()}});
  std::ostream& out = options.json == "-" ? std::cerr : std::cout;
  out << fmt::format("{}: {} ranks, {} tasks, simulated and executed ({})\n\n", scenario.name, step.dag().ranks.size(),
                     step.dag().tasks.size(), step.site().description());
  const double ms = 1e3 / step.dag().info.steps;
  out << fmt::format("  step time: simulated {:.2f} ms, measured {:.2f} ms\n\n", simulated.timeline.makespan() * ms,
                     step.timeline().makespan() * ms);
  out << table_by_kind(step.dag(), simulated.timeline, step.timeline());
  const bool same = compare_orders(step.dag(), simulated.timeline, step.timeline(), out);
  out << fmt::format("{} kinds of collectives exact on crafted data\n", kinds);
  return same ? ExitCode::done : ExitCode::failed;
}

}  // namespace tandem
