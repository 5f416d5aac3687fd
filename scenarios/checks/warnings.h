#pragma once

#include <string>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Something that is possible but unwise.
struct Warning {
  std::string rule;                 ///< a name that stays: "tp-beyond-node"
  std::vector<std::string> fields;  ///< that cause it, as those of an Objection (checks.h)
  std::string sentence;
};

/// What every subcommand warns of, because it follows from the scenario alone; `tandem lint` looks further. For scenarios without
/// objections.
std::vector<Warning> unwise_in(const Scenario& scenario);

}  // namespace tandem::scenarios
