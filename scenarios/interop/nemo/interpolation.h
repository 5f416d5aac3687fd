#pragma once

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Replaces OmegaConf's references: ${model.hidden_size} by the value at that path, ${.x} and ${..x} by one beside or above, and
/// NeMo's ${multiply:4, ${.hidden_size}}, ${divide:..}, ${sum:..} and ${subtract:..} by the number. `training.` at the front of a
/// path is left out where the file has no such section, as launchers nest it. What refers to something else, or to itself, stays
/// as it is written.
void resolve_interpolations(YamlNode& root);

}  // namespace tandem::scenarios
