#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/mesh/symmetry.h"

namespace tandem::scenarios {

/// Finds what of the mesh and its communicators may be shifted without a difference, where `colours` (by rank) are what tells
/// ranks apart.
Symmetry symmetry_of(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster,
                     const std::vector<std::uint32_t>& colours);

}  // namespace tandem::scenarios
