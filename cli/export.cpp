#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/format_option.h"
#include "cli/outputs.h"
#include "scenarios/interop/export_scenario.h"

namespace tandem::cli {
namespace {

struct ExportCommand final : Command {
  ScenarioOptions options;
  std::string to;
  std::string out = "-";

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* ExportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "write a scenario as other programs want it");
  options.add_to(*command);
  add_format_option(*command, "--to", to, exporters());
  command->add_option("--out", out, "the file; standard output without it")->check(not_empty);
  return command;
}

ExitCode ExportCommand::run() const {
  const Exported exported = export_scenario(options.scenario, options.overrides, *find_exporter(to));
  for (const Lost& lost : exported.lost) std::cerr << "tandem: not expressed: " << lost.field << ": " << lost.why << '\n';
  Output(out).write(exported.text);
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_export() { return std::make_unique<ExportCommand>(); }

}  // namespace tandem::cli
