#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <future>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/terminal/points_progress.h"
#include "cli/terminal/progress.h"
#include "cli/text/graph_text.h"
#include "cli/text/relief_text.h"
#include "cli/text/step_text.h"
#include "runtime/base/input_error.h"
#include "runtime/base/stopwatch.h"
#include "sim/fluid_network.h"
#include "studies/recorded/graph_result.h"
#include "studies/relief/relief.h"
#include "studies/report/step_report.h"
#include "studies/runner/step_process.h"
#include "studies/runner/step_runner.h"
#include "studies/step/simulated_step.h"
#include "studies/step/simulation_limits.h"
#include "traces/dag_file.h"

namespace tandem::cli {
namespace {

struct SimulateCommand final : Command {
  StepOptions options;
  std::string no_fold;  ///< what is not folded: empty, time, or all where it is true
  double fold_tolerance = 0;
  Collectives collectives = Collectives::fluid;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs, const Stopwatch& stopwatch) const;
  ExitCode run_graph() const;
  ReliefResult relief_of(const Scenario& scenario, const StepResult& result) const;
};

CLI::App* SimulateCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("simulate", "replay one training step on a model of the cluster");
  options.add_to(*command);
  add_max_memory_option(*command);
  command
      ->add_flag(
          "--no-fold", no_fold,
          "simulate every rank, link and micro-batch instead of one of each class; --no-fold=time: every micro-batch alone")
      ->each([](const std::string& what) {
        if (what != "true" && what != "time") throw CLI::ValidationError("'" + what + "', expected time, or --no-fold alone");
      });
  add_fold_tolerance_option(*command, fold_tolerance);
  add_profile_option(*command, options);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode SimulateCommand::run() const {
  if (is_dag_file(options.scenario)) return run_graph();
  const Stopwatch stopwatch;
  const Scenario scenario = load_with_warnings(options);
  refuse_beyond_limits(scenario, no_fold != "true", collectives);
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, command_line, [&] { return run(scenario, outputs, stopwatch); });
}

/// A DAG that `tandem import` or `tandem lower` wrote has its cluster, its ranks and its times with it.
ExitCode SimulateCommand::run_graph() const {
  const std::array<std::pair<bool, const char*>, 6> of_scenarios{{{!options.overrides.empty(), "--set or --profile"},
                                                                  {!options.report.empty(), "--report"},
                                                                  {!options.trace_ranks.empty(), "--trace-ranks"},
                                                                  {!no_fold.empty(), "--no-fold"},
                                                                  {fold_tolerance > 0, "--fold-tolerance"},
                                                                  {collectives != Collectives::fluid, "--collectives steps"}}};
  for (const auto& [is_given, option] : of_scenarios)
    if (is_given)
      throw InputError({option, 0, 0}, "is for scenarios, and " + options.scenario +
                                           " is a graph, which is simulated as it stands; expected --json or --trace alone");
  Output json(options.json);
  std::unique_ptr<TraceOutput> trace;
  if (!options.trace.empty()) trace = std::make_unique<TraceOutput>(options.trace, "", 0);
  const SimulatedGraph graph = simulate_graph(options.scenario);
  if (trace) warn_of_other_traces("tandem", trace->write({{"simulated", &graph.dag, &graph.timeline, true, {}}}));
  json.write(to_json_object(graph.result).dump(1) + "\n");
  if (!json.is_standard_output()) std::cout << to_text(graph.result, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

ReliefResult SimulateCommand::relief_of(const Scenario& scenario, const StepResult& result) const {
  PointsProgress line;
  const auto told = [&line](const RunProgress& progress) { line.show(progress); };
  return find_relief({options.scenario, options.overrides}, scenario, result, result.gpu_memory,
                     {.jobs = processes_at_once(0), .told = told});
}

ExitCode SimulateCommand::run(const Scenario& scenario, Outputs& outputs, const Stopwatch& stopwatch) const {
  const bool in_steps = collectives == Collectives::steps;
  const bool folds = no_fold != "true" && !in_steps, shows_tasks = !options.trace.empty() || !options.report.empty();
  ProgressBar bar;
  SimulationOptions closely{.fold_tolerance = fold_tolerance,
                            .collectives = collectives,
                            .progress = &bar,
                            .fold_time = no_fold.empty() && options.trace.empty(),
                            .fold_mirrors = options.trace.empty(),
                            .memory_over_time = !options.report.empty()};
  SimulatedStep step;
  BlameBeside blame;
  if (!options.report.empty()) closely.simulated = [&](const FreshStep& fresh) { blame.begin(scenario, fresh); };
  if (shows_tasks) {
    const std::future<void> opened = sim::open_simgrid_beside();  // of lowering
    step = simulate_in_full(scenario, folds, closely, stopwatch);
  } else {
    step.result = result_from_child(scenario, folds, closely, stopwatch);
  }
  const StepResult& result = step.result;
  bar.take_away();
  outputs.write_report([&] { return simulated_page(scenario, step, blame, command_line); });
  if (!result.fits() && !options.allow_oom) {
    const Screen screen = screen_on(STDERR_FILENO);
    std::cerr << to_text(result, screen);
    std::cerr << to_text(relief_of(scenario, result), screen);
    return complain("tandem", out_of_memory_sentence(options.scenario, result), ExitCode::does_not_fit);
  }
  outputs.write(to_json(result), {{"simulated", &step.dag, &step.timeline, true, step.class_of}});
  if (options.json != "-") std::cout << to_text(result, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_simulate() { return std::make_unique<SimulateCommand>(); }

}  // namespace tandem::cli
