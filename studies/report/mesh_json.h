#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// Returns which axis of the mesh lies where on the cluster, with the coordinates of the first GPUs.
nlohmann::ordered_json mesh_json(const Scenario& scenario);

}  // namespace tandem::studies
