#pragma once

#include <cstdint>
#include <vector>

namespace tandem::topology {

inline constexpr std::uint32_t no_parent = 0xFFFFFFFF;

/// NCCL's double binary tree (src/graph/trees.cc, after Sanders, Speck and Träff 2009): two binary trees over the same nodes, so
/// that each is a leaf in one of them and both together load every node's network alike: each tree carries half the vector.
/// Returns the parent of each node. `second` asks for the other tree, a mirror image of the first for even sizes, shifted by one
/// for odd ones.
std::vector<std::uint32_t> binary_tree(std::uint32_t nodes, bool second);

}  // namespace tandem::topology
