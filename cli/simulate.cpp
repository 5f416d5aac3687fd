#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "cli/command.h"
#include "cli/terminal/progress.h"
#include "scenarios/reading/load.h"
#include "studies/report/step_report.h"
#include "studies/step/jitter_times.h"
#include "studies/step/relief.h"
#include "studies/step/simulated_step.h"

namespace tandem::cli {

CLI::App* SimulateCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("simulate", "replay one training step on a model of the cluster");
  options.add_to(*command);
  command->add_flag("--no-fold", no_fold, "simulate every rank and link instead of one of each class");
  command
      ->add_option("--fold-tolerance", fold_tolerance,
                   "under ECMP, merge links whose loads differ by a factor of up to 1 + this; 0 folds exactly")
      ->check(CLI::Range(0.0, 1e6));
  add_profile_option(*command, options);
  add_collectives_option(*command, collectives);
  return command;
}

ExitCode SimulateCommand::run() const {
  const auto began = std::chrono::steady_clock::now();
  const Scenario scenario = load_with_warnings(options);
  if (no_fold && scenario.parallelism.world_size() > most_lowered_ranks) {
    throw InputError({"--no-fold", 0, 0}, "every one of " + std::to_string(scenario.parallelism.world_size()) +
                                              " ranks would be lowered; expected at most " + std::to_string(most_lowered_ranks));
  }
  constexpr std::int64_t most_in_steps = 256;
  const bool in_steps = collectives == Collectives::steps;
  if (in_steps && scenario.parallelism.world_size() > most_in_steps) {
    throw InputError({"--collectives steps", 0, 0}, "every message between " + std::to_string(scenario.parallelism.world_size()) +
                                                        " ranks would be simulated; expected at most " +
                                                        std::to_string(most_in_steps) + " ranks, or --collectives fluid");
  }
  if (in_steps && scenario.jitter.enabled())
    throw InputError({"--collectives steps", 0, 0}, "faults.jitter varies collectives as wholes; expected --collectives fluid");
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, [&] { return run(scenario, outputs, began); });
}

ExitCode SimulateCommand::run(const Scenario& scenario, Outputs& outputs, std::chrono::steady_clock::time_point began) const {
  const bool in_steps = collectives == Collectives::steps;
  ProgressBar bar;
  SimulatedStep step = simulate_step(scenario, !no_fold && !in_steps, {fold_tolerance, collectives, &bar});
  StepResult& result = step.result;
  result.jitter = draw_jitter(scenario, step.dag, result, &bar);
  result.run.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  result.run.peak_rss = std::max(peak_rss(), result.run.peak_rss);
  bar.take_away();
  outputs.write_report([&] { return step_page(scenario, step.dag, step.timeline, result); });
  if (!result.fits() && !options.allow_oom) {
    const Screen screen = screen_on(STDERR_FILENO);
    std::cerr << to_text(result, screen);
    const std::vector<Relief> reliefs = memory_relief(options.scenario, options.overrides, scenario, result.peak_memory(), &bar);
    bar.take_away();
    std::cerr << to_text(reliefs, screen) << "tandem: " << out_of_memory_sentence(options.scenario, result) << '\n';
    return ExitCode::does_not_fit;
  }
  outputs.write(result, {{"simulated", &step.dag, &step.timeline, true, step.class_of}});
  if (options.json != "-") std::cout << to_text(result, screen_on(STDOUT_FILENO));
  return ExitCode::done;
}

}  // namespace tandem::cli
