#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {

ChunkPlacement::ChunkPlacement(const Scenario& scenario)
    : path_(traits_of(scenario.training.schedule).path),
      stages_(static_cast<std::int32_t>(scenario.parallelism.pp)),
      chunks_(static_cast<std::int32_t>(scenario.parallelism.vpp)) {
  parts_ = stages_ * chunks_;
  if (path_ == ChunkPath::mirrored) chunks_ = 2;
}

std::int32_t ChunkPlacement::part(std::int32_t stage, std::int32_t chunk) const {
  if (descends(chunk)) return parts_ - 1 - stage;
  return chunk * stages_ + stage;
}

std::int32_t ChunkPlacement::stage(std::int32_t part) const {
  return path_ == ChunkPath::v && part >= stages_ ? parts_ - 1 - part : part % stages_;
}

}  // namespace tandem::scenarios
