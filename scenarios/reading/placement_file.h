#pragma once

#include <string>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Replaces `parallelism.placement: {file: path}` by the list that the file holds: one GPU number per line, in the order of the
/// ranks, each alone or as an item of a YAML list ("- 17"). Lines that begin with # are comments. A relative path counts from
/// `folder`. Throws InputError.
void read_placement_file(YamlNode& scenario, const std::string& folder);

}  // namespace tandem::scenarios
