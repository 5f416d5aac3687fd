#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {

Placement::Placement(const Scenario& scenario)
    : stages_(static_cast<std::int32_t>(scenario.parallelism.pp)), chunks_(static_cast<std::int32_t>(scenario.parallelism.vpp)) {
  if (scenario.training.schedule == ScheduleKind::zero_bubble_v) kind_ = Kind::v;
  if (scenario.training.schedule == ScheduleKind::dualpipe) kind_ = Kind::mirrored;
  parts_ = stages_ * chunks_;
  if (kind_ == Kind::mirrored) chunks_ = 2;
}

std::int32_t Placement::part(std::int32_t stage, std::int32_t chunk) const {
  if (descends(chunk)) return parts_ - 1 - stage;
  return chunk * stages_ + stage;
}

std::int32_t Placement::stage(std::int32_t part) const {
  return kind_ == Kind::v && part >= stages_ ? parts_ - 1 - part : part % stages_;
}

}  // namespace tandem::scenarios
