#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "scenarios/mesh/mesh.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Where the data-parallel group works in two levels, it is cut into blocks of neighbours, in rank order: HSDP's shard groups, or
/// a node's members under hierarchical all-reduce. Returns the members of a block, 0 where the group is in one piece, as it is
/// where each node holds one member of it, or one node all.
std::int64_t data_block(const Scenario& scenario, const Mesh& mesh);

/// Of the group of `rank`, ascending: those in its block, and those of its place in the blocks.
std::vector<std::uint32_t> in_block(const std::vector<std::uint32_t>& group, std::uint32_t rank, std::int64_t block);
std::vector<std::uint32_t> across_blocks(const std::vector<std::uint32_t>& group, std::uint32_t rank, std::int64_t block);

/// Returns the size of the group that reduces the gradients of the dense part.
std::int64_t data_members(const Mesh& mesh);

/// Returns the least and the most members of one such group that lie on one node, of the nodes that hold any. Neighbouring ranks
/// lie on one node, as under a packed placement.
std::pair<std::int64_t, std::int64_t> data_members_by_node(const Scenario& scenario, const Mesh& mesh);

}  // namespace tandem::scenarios
