#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A rank that is not lowered, but copied.
struct CopiedRank {
  std::size_t from = 0;                      ///< the place of the rank that is lowered, before it
  std::vector<CommunicatorId> communicator;  ///< by that rank's
};

/// Returns by place among these ranks those that can be copied to be simulated: others before them have the same program, and the
/// same roles in their communicators. Which tensors a rank's slices of ZeRO-1 and 2 belong to tells nothing but what orders tasks
/// that are ordered anyway. None under ZeRO-3, where it tells what is gathered, and none where shards go round beside products
/// (training.overlap.tp), of which each rank begins with another.
std::vector<std::optional<CopiedRank>> copied_ranks(const Scenario& scenario, const World& world,
                                                    const std::vector<RankIndex>& ranks);

}  // namespace tandem::scenarios
