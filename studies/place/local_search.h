#pragma once

#include <cstdint>
#include <vector>

#include "studies/place/link_load.h"
#include "studies/place/node_sites.h"

namespace tandem::studies {

struct PlacementBudget {
  std::uint64_t seed = 1;
  std::int64_t moves = 20'000;  ///< tried by the annealing, and again at most as many by the descent after it
};

struct FoundPlacement {
  NodeOfBlock nodes;
  LinkTimes load;
};

/// Returns whether `a` is the smaller load, by the slowest link's time, then by the spread. Differences of rounding are none.
bool is_less(const LinkTimes& a, const LinkTimes& b);

/// Searches for the nodes on which the blocks load links least, from where `load` has them: simulated annealing (Kirkpatrick,
/// Gelatt and Vecchi, "Optimization by Simulated Annealing", Science 220, 1983) over which of the `free` nodes each block is on,
/// cooling geometrically; then a descent over swaps and moves of one block until none helps. A move takes a block to a free node,
/// or swaps it with the block of another node; exchanges two runs of blocks; or reverses one run. The blocks of a run are a power
/// of two apart. Moves among nodes that cannot be told apart are not tried. The annealing goes by the slowest link's time and the
/// spread together; the search keeps the least load by `is_less`.
///
/// Deterministic: equal arguments give equal placements.
FoundPlacement search_from(LinkLoad load, const NodeSites& sites, const std::vector<std::uint32_t>& free,
                           const PlacementBudget& budget);

}  // namespace tandem::studies
