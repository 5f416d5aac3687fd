#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/command.h"
#include "cli/format_option.h"
#include "cli/outputs.h"
#include "scenarios/interop/import_scenario.h"

namespace tandem::cli {
namespace {

struct ImportCommand final : Command {
  std::string file;
  std::string from;
  ImportOptions options{.cluster = "dgx-h100", .gpus = 0, .overrides = {}};
  std::string out = "-";

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* ImportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "make a scenario of another program's configuration");
  command->add_option("file", file, "a script or its arguments; a TOML file; a config.json or its folder")
      ->required()
      ->check(not_empty);
  add_format_option(*command, "--from", from, importers());
  command->add_option("--gpus", options.gpus, "how many GPUs run it; without it, the number that the file implies")
      ->check(CLI::Range(1, 1'048'576));
  command->add_option("--cluster", options.cluster,
                      "preset of the cluster, about which the file says nothing (default: dgx-h100)");
  add_overrides_option(*command, options.overrides, "override a field of the scenario: parallelism.tp=4");
  command->add_option("--out", out, "the scenario; standard output without it")->check(not_empty);
  return command;
}

ExitCode ImportCommand::run() const {
  const ImportedScenario imported = import_scenario(file, *find_importer(from), options);
  tell_warnings(imported.warnings);
  if (!imported.ignored.empty()) {
    std::cerr << "tandem: not imported, as a scenario has no field for it:";
    for (const std::string& what : imported.ignored) std::cerr << ' ' << what;
    std::cerr << '\n';
  }
  Output(out).write(imported.yaml);
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_import() { return std::make_unique<ImportCommand>(); }

}  // namespace tandem::cli
