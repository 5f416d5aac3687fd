#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Renames the long names of Megatron-LM and of Hugging Face's config.json to ours, throughout a scenario, preset or override
/// whose root is a scenario; those of experts, which both keep among the model's, go into model.moe. Throws InputError where a
/// field stands there under two names.
void rename_aliases(YamlNode& scenario);

/// Returns the long names that are understood in a section ("parallelism").
std::vector<std::string> aliases_of(std::string_view section);

}  // namespace tandem::scenarios
