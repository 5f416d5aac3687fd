#include "topology/tree.h"

#include <bit>

namespace tandem::topology {
namespace {

/// Numbers the tree in order: the leaves are the odd nodes, the trailing zeros of a number its height, and the root is node 0.
std::uint32_t parent_of(std::uint32_t node, std::uint32_t nodes) {
  if (node == 0) return no_parent;
  const std::uint32_t bit = 1U << std::countr_zero(node);
  const std::uint32_t right = (node ^ bit) | (bit << 1);
  return right < nodes ? right : node ^ bit;
}

}  // namespace

std::vector<std::uint32_t> binary_tree(std::uint32_t nodes, bool second) {
  std::vector<std::uint32_t> parents(nodes, no_parent);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (!second) {
      parents[node] = parent_of(node, nodes);
      continue;
    }
    const bool mirror = nodes % 2 == 0;
    const auto image = [&](std::uint32_t n) { return mirror ? nodes - 1 - n : (n + nodes - 1) % nodes; };
    const auto back = [&](std::uint32_t n) { return mirror ? nodes - 1 - n : (n + 1) % nodes; };
    const std::uint32_t parent = parent_of(image(node), nodes);
    parents[node] = parent == no_parent ? no_parent : back(parent);
  }
  return parents;
}

}  // namespace tandem::topology
