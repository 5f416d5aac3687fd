#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/mesh/symmetry.h"
#include "scenarios/mesh/world.h"

namespace tandem::scenarios {

/// Finds what of the mesh and its communicators may be shifted without a difference, where `colours` (by rank) are what tells
/// ranks apart. `without_trees` as in `make_world`.
Symmetry symmetry_of(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster,
                     const std::vector<std::uint32_t>& colours, const SlotSet& without_trees = {});

}  // namespace tandem::scenarios
