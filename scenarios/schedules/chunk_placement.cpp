#include "scenarios/schedules/chunk_placement.h"

#include <algorithm>
#include <numeric>

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

std::vector<std::int16_t> ChunkPlacement::chunks_by_part(std::int32_t stage) const {
  std::vector<std::int16_t> chunks(static_cast<std::size_t>(chunks_));
  std::iota(chunks.begin(), chunks.end(), std::int16_t{0});
  std::ranges::sort(chunks, {}, [&](std::int16_t chunk) { return part(stage, chunk); });
  return chunks;
}

std::int32_t ChunkPlacement::stage(std::int32_t part) const {
  return path_ == ChunkPath::v && part >= stages_ ? parts_ - 1 - part : part % stages_;
}

}  // namespace tandem::scenarios
