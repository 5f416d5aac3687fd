#pragma once

#include <string>

#include "cli/search/plan.h"

namespace tandem {

/// Writes what a person needs to run the plan into `folder`, which it makes: `scenario.yaml`, complete but for presets that the
/// document has filled in. A framework's own flags belong beside it.
void write_plan(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec, const std::string& folder);

/// The document over several lines, as a person would write it: a block of fields, short lists and mappings on one line.
std::string to_block_yaml(const YamlNode& document);

}  // namespace tandem
