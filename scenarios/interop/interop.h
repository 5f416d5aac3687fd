#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// A scenario as other programs want it, and back.

/// Something that the other program has no word for.
struct Lost {
  std::string field;  ///< of the scenario: "parallelism.order"
  std::string why;    ///< one clause
};

/// Text for another program. What it cannot express stands in it as comments, too.
struct Exported {
  std::string text;
  std::vector<Lost> lost;
};

/// Arguments of Megatron-Core's pretrain_gpt.py (megatron/training/arguments.py, as of November 2025), one per line. Ranks are
/// numbered by Megatron in its own order, and its data-parallel size is what the world size leaves.
Exported megatron_arguments(const Scenario& scenario);

/// A configuration of TorchTitan (torchtitan/config/job_config.py, version 0.2).
Exported torchtitan_toml(const Scenario& scenario);

/// Variables that make NCCL do what the scenario assumes, where its own choice could be another: KEY=value lines with the reason
/// above each (NVIDIA's "NCCL environment variables"). None where there is nothing to say.
Exported nccl_environment(const Scenario& scenario);

/// The document as YAML for people: a section per paragraph, a field per line.
std::string scenario_yaml(const YamlNode& document);

/// A scenario read from another program's words: all but its cluster, of which that program knows nothing.
struct Imported {
  YamlNode document;                 ///< every value has its place in the file
  std::vector<std::string> ignored;  ///< what says nothing that a scenario has, in the file's order
};

/// From a command line or a shell script that holds one: comments, quotes, arrays and variables that are set in it are
/// understood. `gpus`: how many will run it, 0 where that is not known. Throws InputError, also for values that no scenario
/// expresses.
Imported from_megatron_arguments(const std::string& text, const std::string& file, std::int64_t gpus);

/// From a TorchTitan configuration. The model is known by its name and flavor.
Imported from_torchtitan_toml(const std::string& text, const std::string& file, std::int64_t gpus);

}  // namespace tandem::scenarios
