#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/options.h"
#include "studies/step/executed_step.h"
#include "studies/step/simulation_limits.h"
#include "traces/dag_file.h"

namespace tandem::cli {
namespace {

struct LowerCommand final : Command {
  ScenarioOptions options;
  std::string out;
  bool folded = false;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* LowerCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("lower", "write the step's DAG into a file, for tandem-run to execute elsewhere");
  options.add_to(*command);
  add_max_memory_option(*command);
  command->add_option("--out", out, "the file to write")->required()->check(not_empty);
  command->add_flag("--folded", folded, "lower one rank of each class, to be simulated; without it, all ranks, to be executed");
  return command;
}

ExitCode LowerCommand::run() const {
  const Scenario scenario = load_with_warnings(options);
  OutputFile file(out);
  const Dag dag = folded ? lower_within_limits(scenario, make_world(scenario, true), period_of(scenario))
                         : lower_to_carry(scenario, options.scenario);
  const std::string bytes = to_bytes(dag);
  file.write(bytes);
  file.commit();
  std::cout << out << ": " << dag.tasks.size() << " tasks on " << dag.ranks.size() << " of " << dag.info.gpus << " ranks, "
            << bytes.size() << " bytes\n";
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_lower() { return std::make_unique<LowerCommand>(); }

}  // namespace tandem::cli
