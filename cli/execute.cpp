#include <CLI/CLI.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/program.h"
#include "cli/terminal/progress.h"
#include "cli/text/step_text.h"
#include "cli/text/verification_text.h"
#include "runtime/host/loss.h"
#include "studies/report/step_report.h"
#include "studies/step/executed_step.h"
#include "studies/step/step_dump.h"
#include "studies/step/verification.h"

namespace tandem::cli {
namespace {

struct ExecuteCommand final : Command {
  StepOptions options;
  BackendOptions backend;
  bool verify = false;
  std::string dump;  ///< a folder; empty for none

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  ExitCode run(const Scenario& scenario, Outputs& outputs) const;
};

CLI::App* ExecuteCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("execute", "run one training step for real");
  options.add_to(*command);
  add_max_memory_option(*command, false);
  backend.add_to(*command);
  command->add_flag("--verify", verify, "compare loss, gradients and updated weights with the unsharded model's");
  command
      ->add_option(
          "--dump", dump,
          "with host: write the unsharded weights, tokens, gradients and updated weights into a new folder, as safetensors")
      ->check(not_empty);
  return command;
}

ExitCode ExecuteCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  Outputs outputs(options, scenario.parallelism.world_size());
  return reporting_failure(scenario, outputs, command_line, [&] { return run(scenario, outputs); });
}

ExitCode ExecuteCommand::run(const Scenario& scenario, Outputs& outputs) const {
  std::optional<StepDump> numbers;
  if (!dump.empty()) numbers.emplace(scenario, options.scenario, backend, dump);
  ExecutedStep step(scenario, options.scenario, backend);
  const std::size_t collectives = step.verify_collectives();
  if (numbers) numbers->begin(step);
  ProgressBar bar;
  step.execute(&bar);
  bar.take_away();
  if (numbers) numbers->write(step, scenario);
  StepResult result = step.result();
  result.warnings = scenario.warnings;
  outputs.write(to_json(result), {{"measured", &step.dag(), &step.timeline()}});
  outputs.write_report([&] { return executed_page(scenario, step.dag(), step.timeline(), result, command_line); });
  const auto [out, screen] = outputs.text();
  out << to_text(result, screen) << loss_sentence(step.site().numbers()) << exact_collectives_sentence(collectives);
  if (backend.backend != host_backend) out << "executed on " << step.site().description() << "\n";
  refuse_broken_loss(mean_loss(step.site().numbers()));
  if (!verify) return ExitCode::done;
  const Verification verification = studies::verify(step, scenario, &bar);
  bar.take_away();
  out << to_text(verification, screen);
  return verification.same() ? ExitCode::done : ExitCode::failed;
}

}  // namespace

std::unique_ptr<Command> make_execute() { return std::make_unique<ExecuteCommand>(); }

}  // namespace tandem::cli
