#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "scenarios/interop/interop.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/load.h"
#include "traces/output_file.h"

namespace tandem::cli {
namespace {

/// The scenario with its presets filled in and its options applied, so that it stands alone.
Exported complete_scenario(const std::string& path, const std::vector<std::string>& overrides) {
  const YamlNode document = load_document(path, overrides);
  read_document(document, std::filesystem::path(path).stem().string());
  return {.text = scenario_yaml(document), .lost = {}};
}

}  // namespace

CLI::App* ExportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "write a scenario as other programs want it");
  command->add_option("scenario", scenario, "the scenario file")->required();
  command->add_option("--set", overrides, "override a field: parallelism.tp=4")->allow_extra_args(false)->take_all();
  command
      ->add_option("--to", to,
                   "megatron: arguments; torchtitan: TOML; nccl: its environment; scenario: complete, without presets")
      ->required()
      ->check(CLI::IsMember({"megatron", "torchtitan", "nccl", "scenario"}));
  command->add_option("--out", out, "the file; standard output without it");
  return command;
}

ExitCode ExportCommand::run() const {
  const Scenario read = load_scenario(scenario, overrides);
  const Exported exported = to == "megatron"     ? megatron_arguments(read)
                            : to == "torchtitan" ? torchtitan_toml(read)
                            : to == "nccl"       ? nccl_environment(read)
                                                 : complete_scenario(scenario, overrides);
  for (const Lost& lost : exported.lost) std::cerr << "tandem: not expressed: " << lost.field << ": " << lost.why << '\n';
  if (out.empty()) {
    std::cout << exported.text;
    return ExitCode::done;
  }
  OutputFile file(out);
  file.write(exported.text);
  file.commit();
  return ExitCode::done;
}

}  // namespace tandem::cli
