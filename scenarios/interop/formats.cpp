#include "scenarios/interop/formats.h"

#include <algorithm>

namespace tandem::scenarios {

/// Each is defined in the file of its name.
ScenarioWriter megatron_arguments, torchtitan_toml, nccl_environment;
ScenarioReader from_megatron, from_torchtitan, from_hf;

namespace {

constexpr Exporter all_exporters[] = {
    {"megatron", "arguments of pretrain_gpt.py", "megatron.args", megatron_arguments},
    {"torchtitan", "a job in TOML", "torchtitan.toml", torchtitan_toml},
    {"nccl", "environment variables", "nccl.env", nccl_environment},
    {"scenario", "YAML without presets", "scenario.yaml",
     [](const ScenarioWithDocument& read) { return Exported{.text = scenario_yaml(read.document), .lost = {}}; }},
};

constexpr Importer all_importers[] = {
    {"megatron", "pretrain_gpt.py's arguments", from_megatron},
    {"torchtitan", "a job's configuration", from_torchtitan},
    {"hf", "Hugging Face's config.json, or a folder with it", from_hf, "config.json"},
};

template <typename Format>
const Format* find_by_name(std::span<const Format> formats, std::string_view name) {
  const auto found = std::ranges::find(formats, name, &Format::name);
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Exporter> exporters() { return all_exporters; }
std::span<const Importer> importers() { return all_importers; }

const Exporter* find_exporter(std::string_view name) { return find_by_name(exporters(), name); }
const Importer* find_importer(std::string_view name) { return find_by_name(importers(), name); }

}  // namespace tandem::scenarios
