#pragma once

#include <cstdint>

#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// What this rank owns of each bucket.
struct Ownership {
  std::int64_t owners = 1;       ///< slices that a bucket is cut into
  std::int64_t slice = 0;        ///< the one of this rank
  std::int64_t replicas = 1;     ///< ranks that own the same slice and add it to the gradient norm
  std::int64_t granularity = 1;  ///< a slice's elements are a multiple of this
};

Ownership ownership(const Scenario& scenario, const World& world, RankIndex rank);

/// The same of the experts' weights.
Ownership expert_ownership(const Scenario& scenario, const World& world, RankIndex rank);

/// The size of the rank's communicator in `slot`, and the rank's place in it.
struct PlaceInGroup {
  std::int64_t of = 1, at = 0;
};
PlaceInGroup place_in(const World& world, RankIndex rank, Slot slot);

}  // namespace tandem::scenarios
