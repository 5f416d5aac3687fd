#include "scenarios/interop/formats.h"

#include <algorithm>

namespace tandem::scenarios {
namespace {

constexpr Exporter all_exporters[] = {
    {"megatron", "arguments of pretrain_gpt.py", "megatron.args",
     [](const ScenarioWithDocument& read) { return megatron_arguments(read.scenario); }},
    {"torchtitan", "a job in TOML", "torchtitan.toml",
     [](const ScenarioWithDocument& read) { return torchtitan_toml(read.scenario); }},
    {"nccl", "environment variables", "nccl.env",
     [](const ScenarioWithDocument& read) { return nccl_environment(read.scenario); }},
    {"scenario", "YAML without presets", "scenario.yaml",
     [](const ScenarioWithDocument& read) { return Exported{.text = scenario_yaml(read.document), .lost = {}}; }},
};

constexpr Importer all_importers[] = {
    {"megatron", "pretrain_gpt.py's arguments", from_megatron_arguments},
    {"torchtitan", "a job's configuration", from_torchtitan_toml},
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
