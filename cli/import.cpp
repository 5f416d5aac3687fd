#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/command.h"
#include "cli/format_option.h"
#include "cli/outputs.h"
#include "studies/interop/import_source.h"

namespace tandem::cli {
namespace {

struct ImportCommand final : Command {
  std::string from;
  ImportRequest request;
  std::string out = "-", json;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

CLI::App* ImportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "read what another program wrote");
  command->add_option("file", request.paths, "what to read: a file or a folder; of some kinds several")
      ->required()
      ->check(not_empty);
  add_format_option(*command, "--from", from, import_sources());
  command->add_option("--step", request.step, "of traces: the N of a ProfilerStep#N (default: a typical one)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--gpus", request.gpus, "how many GPUs run it; without it, the number that the file implies")
      ->check(CLI::Range(1, 1'048'576));
  command->add_option("--cluster", request.cluster,
                      "preset of the cluster, about which the file says nothing (default: dgx-h100)");
  add_overrides_option(*command, request.overrides, "override a field of the scenario: parallelism.tp=4");
  command->add_option("--env", request.environment, "a variable that a script reads: TP=4; may be given several times")
      ->allow_extra_args(false);
  command->add_option("--out", out, "what the file became; standard output without it")->check(not_empty);
  command->add_option("--json", json, "what was assumed and what was left out, as JSON; - for standard output")->check(not_empty);
  return command;
}

nlohmann::ordered_json account_of(const ImportCommand& command, const ImportResult& imported) {
  return {{"kind", "import"},
          {"from", command.from},
          {"files", command.request.paths},
          {"assumed", imported.assumed},
          {"warnings", imported.warnings},
          {"ignored", imported.ignored}};
}

ExitCode ImportCommand::run() const {
  if (json == "-" && out == "-") throw InputError({"--json", 0, 0}, "is `-`, where --out already goes; expected a file");
  Output account(json);
  const ImportResult imported = import_files(*std::ranges::find(import_sources(), from, &ImportSource::name), request);
  tell_warnings(imported.warnings);
  for (const std::string& what : imported.assumed) std::cerr << "tandem: assumed: " << what << '\n';
  if (!imported.ignored.empty()) {
    std::cerr << "tandem: not imported, as nothing stands for it here:";
    for (const std::string& what : imported.ignored) std::cerr << ' ' << what;
    std::cerr << '\n';
  }
  Output(out).write(imported.out);
  if (account) account.write(account_of(*this, imported).dump(1) + "\n");
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_import() { return std::make_unique<ImportCommand>(); }

}  // namespace tandem::cli
