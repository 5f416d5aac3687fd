#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "scenarios/mesh/world.h"

namespace tandem::studies {

using scenarios::World;

/// What of a flow decides on its rate.
struct SharingFlow {
  CommunicatorId communicator = 0;
  std::uint32_t path = 0;
  BytesPerSecond limit = 0;  ///< 0: none
  auto operator<=>(const SharingFlow&) const = default;
};

/// Max-min fair rates of a channel of each flow, as SimGrid shares links (see sim/fluid_network.h): all rise together, until the
/// links of some are full or their own limit is reached.
std::vector<BytesPerSecond> fair_rates(const std::vector<SharingFlow>& flows, const World& world);

}  // namespace tandem::studies
