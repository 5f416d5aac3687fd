#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/units.h"

namespace tandem {

using LinkId = std::uint32_t;

enum class Tier : std::uint8_t {
  nvlink,
  nic,
  leaf,
  spine,
  core
};
constexpr const char* name_of(Tier tier) {
  constexpr const char* names[] = {"nvlink", "nic", "leaf", "spine", "core"};
  return names[static_cast<int>(tier)];
}

/// One direction of a link, or in a folded network one representative of a class of equal links.
struct Link {
  std::string name = {};
  Tier tier = Tier::nvlink;
  BytesPerSecond capacity = 0;  ///< achievable: protocol overhead is already taken off
  std::int64_t count = 1;       ///< how many links this one stands for
};

/// A flow of rate x uses `multiplicity * x` of the link's capacity.
struct Crossing {
  LinkId link = 0;
  std::uint32_t multiplicity = 1;
  bool operator==(const Crossing&) const = default;
};

/// How a communicator's ring lies on the network.
///
/// A collective is one fluid flow: each of `channels` rings carries the same rate x over every hop, and the crossings say how
/// often each link is crossed by all of them together. A pair (send -> receive) is one channel with one hop.
struct RingLayout {
  std::uint32_t channels = 1;
  std::uint32_t nodes = 1;    ///< number of nodes the members lie in
  Seconds intra_latency = 0;  ///< one hop inside the node
  Seconds inter_latency = 0;  ///< one hop between nodes, the longest of the ring
  std::vector<Crossing> crossings = {};
};

}  // namespace tandem
