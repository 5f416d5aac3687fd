#pragma once

#include <cstdint>

#include "studies/search/schedules.h"
#include "studies/search/stage_costs.h"

namespace tandem::studies {

/// A lower bound of the peak of memory on the plan's fullest stage: weights, gradients and optimizer states, what the
/// micro-batches in flight keep, and what a backward needs beyond that.
struct MemoryBound {
  Bytes peak = 0;
  std::int32_t stage = 0;  ///< the fullest
};
MemoryBound memory_bound(const Scenario& scenario, const StageCosts& costs, Schedules& schedules);

}  // namespace tandem::studies
