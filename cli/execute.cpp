#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "cli/command.h"
#include "studies/step/executed_step.h"
#include "studies/report/step_report.h"
#include "studies/step/verification.h"
#include "runtime/host/loss.h"

namespace tandem {

CLI::App* ExecuteCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("execute", "run one training step for real");
  options.add_to(*command);
  backend.add_to(*command);
  command->add_flag("--verify", verify, "compare loss, gradients and updated weights with the unsharded model's");
  return command;
}

ExitCode ExecuteCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  Outputs outputs(options, scenario.parallelism.world());
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
  return verify ? report_verification(step, scenario, out, screen, &bar) : ExitCode::done;
}

}  // namespace tandem
