#pragma once

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Returns what was read into `scenario` as a document again: `name`, and every field of `model`, `parallelism` and `training`
/// that has a meaning there, whether it was stated or a default. Reading it with the same cluster gives the same specs. The
/// cluster and the framework are not in it: their numbers come from presets, which the document that was read still has.
YamlNode scenario_sections(const Scenario& scenario);

}  // namespace tandem::scenarios
