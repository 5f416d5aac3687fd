#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/format_option.h"
#include "cli/outputs.h"
#include "studies/interop/export_target.h"

namespace tandem::cli {
namespace {

struct ExportCommand final : Command {
  ScenarioOptions options;
  std::string to;
  std::string out;
  std::string ranks;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* ExportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "write a scenario as other programs want it");
  options.add_to(*command);
  add_max_memory_option(*command);
  add_format_option(*command, "--to", to, export_targets());
  command->add_option("--out", out, "the file, standard output without it; of chakra the folder")->check(not_empty);
  command->add_option("--ranks", ranks, "with chakra: the ranks whose traces are written, such as 0,5,16-31 (default: all)")
      ->check(not_empty);
  return command;
}

ExitCode ExportCommand::run() const {
  const ExportTarget& target = *std::ranges::find(export_targets(), to, &ExportTarget::name);
  const ExportResult exported = export_for(target, {.scenario = options.scenario,
                                                    .overrides = options.overrides,
                                                    .folder = target.is_folder ? out : std::string(),
                                                    .ranks = ranks});
  for (const std::string& lost : exported.lost) std::cerr << "tandem: not expressed: " << lost << '\n';
  if (target.is_folder) {
    std::cout << exported.written << '\n';
  } else {
    Output(out.empty() ? "-" : out).write(exported.text);
  }
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_export() { return std::make_unique<ExportCommand>(); }

}  // namespace tandem::cli
