#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// Which axis of the mesh lies where on the cluster, and the coordinates of its first GPUs.
nlohmann::ordered_json mesh_json(const Scenario& scenario);

}  // namespace tandem::studies
