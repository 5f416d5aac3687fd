#pragma once

#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Something that is possible but unwise.
struct Warning {
  std::string rule;  ///< a name that stays: "tp-beyond-node"
  Place place;
  std::string sentence;
};

/// What every subcommand warns of, because it follows from the scenario alone; `tandem lint` looks further. The sentences of
/// `find_warnings` (validate.h) are these with their places.
std::vector<Warning> unwise_in(const Scenario& scenario, const YamlNode& document);

}  // namespace tandem::scenarios
