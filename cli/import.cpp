#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/format_option.h"
#include "cli/outputs.h"
#include "runtime/base/input_error.h"
#include "scenarios/interop/import_scenario.h"
#include "studies/kineto/rank_step.h"

namespace tandem::cli {
namespace {

struct ImportCommand final : Command {
  std::string file;
  std::string from;
  ImportOptions options{.cluster = "dgx-h100", .gpus = 0, .overrides = {}};
  std::string out = "-";
  std::optional<std::int64_t> step;  ///< of a trace

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;
};

/// A row of what can be imported: the scenarios of other programs, and what is none.
struct Source {
  std::string_view name, what;
  std::function<void(const ImportCommand&)> run;
};

void import_as_scenario(const ImportCommand& command, const Importer& importer) {
  if (command.step) throw InputError({"--step", 0, 0}, "is for --from kineto; expected none");
  const ImportedScenario imported = import_scenario(command.file, importer, command.options);
  tell_warnings(imported.warnings);
  if (!imported.ignored.empty()) {
    std::cerr << "tandem: not imported, as a scenario has no field for it:";
    for (const std::string& what : imported.ignored) std::cerr << ' ' << what;
    std::cerr << '\n';
  }
  Output(command.out).write(imported.yaml);
}

void import_traces(const ImportCommand& command) {
  if (!command.options.overrides.empty() || command.options.gpus != 0)
    throw InputError({"--from kineto", 0, 0}, "makes no scenario, whose fields --set and --gpus are; expected neither");
  const std::vector<KinetoTrace> traces = read_kineto_traces(command.file);
  std::vector<RankStep> steps;
  for (const KinetoTrace& trace : traces) steps.push_back(step_of(trace, command.step));
  const auto missing = traces.front().world_size - static_cast<std::int64_t>(traces.size());
  if (missing > 0) tell_warnings({fmt::format("{} of {} ranks are not there", missing, traces.front().world_size)});
  Output(command.out).write(to_json_object(traces, steps).dump(1) + "\n");
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = [] {
    std::vector<Source> rows;
    for (const Importer& importer : importers())
      rows.push_back({importer.name, importer.what, [&importer](const ImportCommand& c) { import_as_scenario(c, importer); }});
    rows.push_back({"kineto", "torch.profiler's traces, a file or a folder with one of each rank: where the time of a step goes",
                    import_traces});
    return rows;
  }();
  return all;
}

CLI::App* ImportCommand::add_to(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("import", "make a scenario of another program's configuration, or read its measurements");
  command->add_option("file", file, "a script or its arguments; a TOML file; a config.json or its folder; traces")
      ->required()
      ->check(not_empty);
  add_format_option(*command, "--from", from, std::span(sources()));
  command->add_option("--step", step, "of traces: the N of a ProfilerStep#N (default: a typical one)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--gpus", options.gpus, "how many GPUs run it; without it, the number that the file implies")
      ->check(CLI::Range(1, 1'048'576));
  command->add_option("--cluster", options.cluster,
                      "preset of the cluster, about which the file says nothing (default: dgx-h100)");
  add_overrides_option(*command, options.overrides, "override a field of the scenario: parallelism.tp=4");
  command->add_option("--out", out, "the scenario, or with kineto the step as JSON; standard output without it")
      ->check(not_empty);
  return command;
}

ExitCode ImportCommand::run() const {
  std::ranges::find(sources(), from, &Source::name)->run(*this);
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_import() { return std::make_unique<ImportCommand>(); }

}  // namespace tandem::cli
