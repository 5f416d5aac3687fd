#include "scenarios/interop/formats.h"

#include <algorithm>

namespace tandem::scenarios {

/// Each is defined in the file of its name.
ScenarioWriter megatron_arguments, megatron_bridge_yaml, deepspeed_json, torchtitan_recipe, torchtitan_toml, torchrun_script,
    slurm_script, nccl_environment;
ScenarioReader from_megatron, from_megatron_bridge, from_nemo, from_deepspeed, from_torchtitan, from_hf;

namespace {

constexpr Exporter all_exporters[] = {
    {"megatron", "arguments of pretrain_gpt.py", "megatron.args", megatron_arguments},
    {"megatron-bridge", "the run_config.yaml of Megatron-Bridge", "run_config.yaml", megatron_bridge_yaml},
    {"deepspeed", "a configuration of DeepSpeed, in JSON", "ds_config.json", deepspeed_json},
    {"torchtitan", "a function of config_registry.py", "torchtitan.py", torchtitan_recipe},
    {"torchtitan-0.2", "a job in TOML", "torchtitan.toml", torchtitan_toml},
    {"torchrun", "a script that starts pretrain_gpt.py on a node", "torchrun.sh", torchrun_script},
    {"slurm", "a batch script that starts it on all nodes", "slurm.sbatch", slurm_script},
    {"nccl", "environment variables", "nccl.env", nccl_environment},
    {"scenario", "YAML without presets", "scenario.yaml",
     [](const ScenarioWithDocument& read) { return Exported{.text = scenario_yaml(read.document), .lost = {}}; }},
};

constexpr Importer all_importers[] = {
    {"megatron", "pretrain_gpt.py's arguments", from_megatron},
    {"megatron-bridge", "Megatron-Bridge's run_config.yaml, or a folder with it", from_megatron_bridge, "run_config.yaml"},
    {"nemo", "NeMo 1's configuration or NeMo 2's recipe, in YAML", from_nemo},
    {"deepspeed", "DeepSpeed's JSON", from_deepspeed},
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
