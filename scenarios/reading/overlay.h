#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Lays `patch` over `base`: mappings are merged field by field and keep their place, anything else is replaced.
void overlay(YamlNode& base, const YamlNode& patch);

/// Adds to `node` what only `defaults` has, field by field. Whatever stands in both keeps its value and its place.
void fill_in(YamlNode& node, const YamlNode& defaults);

/// Applies "path=value", e.g. "parallelism.tp=4"; an empty value takes the field away, so that its default applies.
/// Long names are understood in the path. Later errors about the value name the option.
void apply_override(YamlNode& scenario, const std::string& option);

/// A field of a scenario and the value to put there, which was parsed elsewhere.
struct Assignment {
  std::string path;  ///< as for --set: "parallelism.dp"
  Place place;       ///< of the path
  YamlNode value;    ///< keeps its place; null takes the field away, so that its default applies
};
using Assignments = std::vector<Assignment>;

/// Puts the value there.
void apply_override(YamlNode& scenario, const Assignment& assignment);

/// Calls `visit` for the field `gpu` of each item of `cluster.other_gpus` that has one.
void for_each_other_gpu(YamlNode& cluster, const std::function<void(YamlNode*)>& visit);

/// Replaces a preset's name alone by {preset: name}, at `model`, `campaign`, `cluster`, `cluster.gpu` and those of
/// `cluster.other_gpus`.
void expand_preset_names(YamlNode& scenario);

}  // namespace tandem::scenarios
