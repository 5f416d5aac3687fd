#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// Returns the scenario as a person would tell it: groups (model, parallelism, training, cluster) of names and values.
nlohmann::ordered_json facts_of(const Scenario& scenario);

}  // namespace tandem::studies
