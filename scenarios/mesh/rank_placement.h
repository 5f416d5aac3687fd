#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Returns each rank's GPU; nothing where every rank is on the GPU of its own number.
std::vector<std::uint32_t> gpus_of_ranks(const Scenario& scenario);

/// Returns whether ranks that would share a node if packed share one, and no others are there.
bool keeps_nodes_together(const Scenario& scenario);

/// Says which GPU and node each rank is on.
class RankPlaces {
 public:
  explicit RankPlaces(const Scenario& scenario);

  std::uint32_t gpu(std::uint32_t rank) const { return gpus_.empty() ? rank : gpus_[rank]; }
  std::int64_t node(std::uint32_t rank) const { return gpu(rank) / gpus_per_node_; }

 private:
  std::vector<std::uint32_t> gpus_;
  std::int64_t gpus_per_node_;
};

}  // namespace tandem::scenarios
