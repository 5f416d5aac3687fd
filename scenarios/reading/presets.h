#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

enum class PresetKind : std::uint8_t {
  model,
  cluster,
  gpu,
  framework,
  campaign
};

/// Returns the names of the presets of a kind, sorted.
std::vector<std::string> preset_names(PresetKind kind);

/// Replaces `preset: name` in `model`, `cluster`, its GPUs and `training.framework` by the preset's fields, under whatever the
/// scenario overrides. A name with a slash or ending in .yaml is a file beside the scenario, in `folder`. A GPU preset brings the
/// profile of its kernels along, sim/profiles/<gpu>.yaml, as its field `efficiency`. A placement in a file is read, too
/// (placement_file.h).
void resolve_presets(YamlNode& scenario, const std::string& folder);

/// Does so for the section `campaign`, which must be there; without `preset` it takes llama3-2024.
void resolve_campaign_preset(YamlNode& scenario, const std::string& folder);

}  // namespace tandem::scenarios
