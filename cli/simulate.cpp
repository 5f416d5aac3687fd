#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/terminal/points_progress.h"
#include "cli/terminal/progress.h"
#include "cli/text/relief_text.h"
#include "cli/text/step_text.h"
#include "runtime/base/stopwatch.h"
#include "studies/relief/relief.h"
#include "studies/report/step_report.h"
#include "studies/runner/step_runner.h"
#include "studies/step/simulated_step.h"
#include "studies/step/simulation_limits.h"

namespace tandem::cli {
namespace {

struct SimulateCommand final : Command {
  StepOptions options;
  bool no_fold = false;
  double fold_tolerance = 0;
  Collectives collectives = Collectives::fluid;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs, const Stopwatch& stopwatch) const;
  ReliefResult relief_of(const Scenario& scenario, const StepResult& result) const;
};

CLI::App* SimulateCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("simulate", "replay one training step on a model of the cluster");
  options.add_to(*command);
  command->add_flag("--no-fold", no_fold, "simulate every rank and link instead of one of each class");
  add_fold_tolerance_option(*command, fold_tolerance);
  add_profile_option(*command, options);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode SimulateCommand::run() const {
  const Stopwatch stopwatch;
  const Scenario scenario = load_with_warnings(options);
  refuse_beyond_limits(scenario, !no_fold, collectives);
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, command_line, [&] { return run(scenario, outputs, stopwatch); });
}

ReliefResult SimulateCommand::relief_of(const Scenario& scenario, const StepResult& result) const {
  PointsProgress line;
  const auto told = [&line](const RunProgress& progress) { line.show(progress); };
  return find_relief({options.scenario, options.overrides}, scenario, result, result.gpu_memory,
                     {.jobs = processes_at_once(0), .told = told});
}

ExitCode SimulateCommand::run(const Scenario& scenario, Outputs& outputs, const Stopwatch& stopwatch) const {
  const bool in_steps = collectives == Collectives::steps;
  ProgressBar bar;
  const SimulatedStep step = simulate_in_full(scenario, !no_fold && !in_steps, {fold_tolerance, collectives, &bar}, stopwatch);
  const StepResult& result = step.result;
  bar.take_away();
  outputs.write_report([&] { return step_page(scenario, step.dag, step.timeline, result, command_line); });
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
