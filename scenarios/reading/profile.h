#pragma once

#include <string>

#include "runtime/dag/profile.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Reads a profile as `tandem calibrate` wrote it, as protobuf or, where the name ends in .yaml, as YAML; or one that comes with
/// Tandem (scenarios/presets/profiles), by name. Throws InputError.
Profile read_profile(const std::string& path);

/// Moves a cluster's `profile` to its GPU, where it goes before one that the GPU's preset brings along.
void move_profile_to_gpu(YamlNode& cluster);

/// Replaces the `profile: path` of a GPU or cluster, which counts from `folder`, by {file: absolute path or name, contents: a
/// hash of them}, so that the scenario is another one when the profile is. `none` takes the field away. Throws InputError where
/// there is no such file.
void resolve_profile(YamlNode* owner, const std::string& folder);

}  // namespace tandem::scenarios
