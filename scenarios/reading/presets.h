#pragma once

#include <optional>
#include <string>
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

// A preset is a file with the fields of one section: scenarios/presets/<kind>s/<name>.yaml, embedded into the binary, or a file
// beside the scenario, whose name has a slash or ends in .yaml. The field `as` names another preset of its kind, which has what
// the file does not state. A model may be a config.json of Hugging Face, too (hf_model.h).

/// Whether a preset's name is that of a file.
bool is_preset_file(const std::string& name);

/// The fields of a preset, those of its `as` filled in, names tidied up. Paths count from `folder`. Throws InputError where there
/// is no such preset, at the place of the name.
YamlNode preset_fields(PresetKind kind, const YamlNode& name, const std::string& folder);

/// The same; nothing where no preset that comes with Tandem has this name.
std::optional<YamlNode> find_preset(PresetKind kind, const YamlNode& name, const std::string& folder);

/// Replaces `preset: name` in `model`, `cluster`, its GPUs and `training.framework` by the preset's fields, under whatever the
/// scenario overrides. `folder` is the scenario's. A placement in a file is read, too (placement_file.h).
void resolve_presets(YamlNode& scenario, const std::string& folder);

/// Does so for the section `campaign`, which must be there; without `preset` it takes llama3-2024.
void resolve_campaign_preset(YamlNode& scenario, const std::string& folder);

}  // namespace tandem::scenarios
