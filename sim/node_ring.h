#pragma once

#include <compare>
#include <cstdint>

#include "runtime/base/units.h"

namespace tandem::sim {

/// A ring over nodes that are all alike, seen in one of them. `hops` on end make one node's part of the ring: the first comes
/// from the node before, the others pass from member to member. There are as many channels as members, each turned by one against
/// the one before, so that each member's port has one channel's message of every hop inside the node, and shares itself among
/// those that are under way.
struct NodeRing {
  std::uint32_t hops = 2;
  std::uint32_t messages = 1;  ///< over each hop
  Seconds over_nodes = 0;      ///< transfer of a message from node to node
  Seconds alone = 0;           ///< inside, with the port to itself
  Seconds least = 0;           ///< inside, at the highest rate of a message, which is `alone` or longer
  Seconds intra_latency = 0, inter_latency = 0;

  auto operator<=>(const NodeRing&) const = default;
};

/// Returns when the last message has arrived, if all first ones leave at 0. Message i of a hop leaves after message i - 1, and
/// not before message i - 1 of the hop before has arrived.
///
/// Played message by message for the first rounds; the dates are then all but periodic, and what is left follows from the last
/// round's growth. What was played is kept for those who ask again, in this process and its children: each analysis of a step has
/// the same rings.
Seconds play_node_ring(const NodeRing& ring);

}  // namespace tandem::sim
