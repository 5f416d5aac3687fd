#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "cli/command.h"
#include "cli/terminal/progress.h"
#include "cli/text/verification_text.h"
#include "runtime/host/loss.h"
#include "studies/report/step_report.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"

namespace tandem::cli {

CLI::App* ExecuteCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("execute", "run one training step for real");
  options.add_to(*command);
  backend.add_to(*command);
  command->add_flag("--verify", verify, "compare loss, gradients and updated weights with the unsharded model's");
  return command;
}

ExitCode ExecuteCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, [&] { return run(scenario, outputs); });
}

ExitCode ExecuteCommand::run(const Scenario& scenario, Outputs& outputs) const {
  ExecutedStep step(scenario, options.scenario, backend);
  const std::size_t collectives = step.verify_collectives();
  ProgressBar bar;
  step.execute(&bar);
  bar.take_away();
  StepResult result = step.result();
  result.warnings = scenario.warnings;
  outputs.write(result, {{"measured", &step.dag(), &step.timeline()}});
  outputs.write_report([&] { return step_page(scenario, step.dag(), step.timeline(), result); });
  const bool json_goes_out = options.json == "-";
  std::ostream& out = json_goes_out ? std::cerr : std::cout;
  const Screen screen = screen_on(json_goes_out ? STDERR_FILENO : STDOUT_FILENO);
  out << to_text(result, screen) << loss_sentence(step.site().numbers()) << collectives
      << " kinds of collectives exact on crafted data\n";
  if (!verify) return ExitCode::done;
  const Verification verification = studies::verify(step, scenario, &bar);
  bar.take_away();
  out << to_text(verification, screen);
  return verification.same() ? ExitCode::done : ExitCode::failed;
}

}  // namespace tandem::cli
