#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "runtime/base/text_file.h"
#include "scenarios/interop/interop.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/yaml_mapping.h"
#include "traces/output_file.h"

namespace tandem::cli {
namespace {

/// Refuses what no scenario could be, at its place in the other program's file.
void check(YamlNode document, const std::string& name) {
  expand_preset_names(document);
  resolve_presets(document, "");
  const Scenario scenario = read_document(document, name);
  for (const std::string& warning : scenario.warnings) std::cerr << "tandem: warning: " << warning << '\n';
}

}  // namespace

CLI::App* ImportCommand::add_to(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "make a scenario of another program's configuration");
  command->add_option("file", file, "a script or its arguments; a TOML file")->required();
  command->add_option("--from", from, "megatron: pretrain_gpt.py's arguments; torchtitan: a job's configuration")
      ->required()
      ->check(CLI::IsMember({"megatron", "torchtitan"}));
  command->add_option("--gpus", gpus, "how many GPUs run it; without it, the number that the file implies")
      ->check(CLI::Range(1, 1'048'576));
  command->add_option("--cluster", cluster, "preset of the cluster, of which the file says nothing (dgx-h100)");
  command->add_option("--set", overrides, "override a field of the scenario: parallelism.tp=4")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--out", out, "the scenario; standard output without it");
  return command;
}

ExitCode ImportCommand::run() const {
  const std::string text = read_text_file(file), name = std::filesystem::path(file).stem().string();
  Imported imported = from == "megatron" ? from_megatron_arguments(text, file, gpus) : from_torchtitan_toml(text, file, gpus);
  YamlNode& document = imported.document;
  const Place option{.file = "--cluster"};
  YamlNode& section = section_of(document, "cluster", option);
  put(section, "preset", cluster, option);
  if (gpus > 0) put(section, "gpus", gpus, {.file = "--gpus"});
  const YamlNode* parallelism = document.find("parallelism");
  if (gpus == 0 && parallelism->find(name_of(Axis::dp)) == nullptr)
    throw InputError({.file = file}, "the arguments do not tell on how many GPUs they run, expected --gpus");
  if (document.find("name") == nullptr) put(document, "name", name, {.file = file});
  for (const std::string& change : overrides) apply_override(document, change);
  check(document, name);
  if (!imported.ignored.empty()) {
    std::cerr << "tandem: without a meaning for a scenario:";
    for (const std::string& what : imported.ignored) std::cerr << ' ' << what;
    std::cerr << '\n';
  }
  const std::string yaml = scenario_yaml(document);
  if (out.empty()) {
    std::cout << yaml;
    return ExitCode::done;
  }
  OutputFile output(out);
  output.write(yaml);
  output.commit();
  return ExitCode::done;
}

}  // namespace tandem::cli
