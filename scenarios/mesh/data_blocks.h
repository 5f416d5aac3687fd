#pragma once

#include <cstdint>

#include "scenarios/mesh/mesh.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Where the data-parallel group works in two levels, it is cut into blocks of neighbours, in rank order: HSDP's shard groups, or
/// a node's members under hierarchical all-reduce. Returns the members of a block, 0 where the group is in one piece.
std::int64_t data_block(const Scenario& scenario, const Mesh& mesh);

/// Returns how many members of the data-parallel group of `rank` are on the rank's node.
std::int64_t data_members_on_node(const Scenario& scenario, const Mesh& mesh, std::uint32_t rank);

}  // namespace tandem::scenarios
