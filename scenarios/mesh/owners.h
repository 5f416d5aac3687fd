#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/mesh/mesh.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Returns the rank's place among those that reduce gradients with it, in the order of their communicator: from ZeRO-1 on, which
/// slice it owns.
std::int64_t place_in_data_group(const Mesh& mesh, std::uint32_t rank);

/// By rank: equal where the same matrices are Muon's to update, but for the pipeline stage. Matrices are dealt out one by one to
/// the places of the data-parallel groups (lowering/bucket_layout.h), so that those beyond the number of matrices have none.
std::vector<std::uint32_t> muon_shares(const Scenario& scenario, const Mesh& mesh);

}  // namespace tandem::scenarios
