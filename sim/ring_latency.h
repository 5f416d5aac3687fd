#pragma once

#include <cstdint>

#include "sim/collective_cost.h"

namespace tandem::sim {

/// Returns what a ring takes beyond its transfer over the slowest hop: the flow's latency.
///
/// Of n members in k nodes, each sends K messages of bytes_per_channel / K to the next, K = n - 1 for an all-gather or
/// reduce-scatter, twice that for an all-reduce, and passes on what it got in the step before. A message leaves c/b after the one
/// before it has left and that which it passes on has arrived, and arrives its hop's latency after it has left. So the last one
/// arrives when the longest chain of these ends, which either stays with the slowest hop or goes round with the ring (Baccelli,
/// Cohen, Olsder, Quadrat: Synchronization and Linearity, 1992, section 2.3):
///   start + max(K c/b of the slowest hop + its latency, sum over K hops on end of c/b + latency)
/// Of K hops on end, as many as can be lie between nodes. Where several channels share the ports inside a node, what a hop takes
/// there depends on how they meet: then the second term is played (node_ring.h).
///
/// `cost` has all but its latency. Rates are those of the layout in an idle network, up to the cost's limit.
Seconds ring_latency(std::uint32_t passes, std::uint32_t members, const Layout& layout, const CollectiveCost& cost);

/// Returns how many of `passes` (n - 1) consecutive hops of a ring lie between nodes at most.
std::uint32_t hops_between_nodes(std::uint32_t passes, std::uint32_t members, std::uint32_t nodes);

}  // namespace tandem::sim
