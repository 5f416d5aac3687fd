#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "studies/search/stage_costs.h"

namespace tandem::studies {

/// The orders in which stages compute, each made once.
class Schedules {
 public:
  /// By stage.
  const std::vector<std::vector<Action>>& of(const Scenario& scenario, std::int32_t micro_batches);

 private:
  std::map<std::tuple<ScheduleKind, std::int64_t, std::int64_t, std::int32_t>, std::vector<std::vector<Action>>> known_;
};

/// No simulation of the plan takes less: the largest, over the stages, of
///
///   the first micro-batch's way there + what the stage computes, pass after pass + the last backward's way to the first stage
///
/// and of what goes over its data-parallel stream. O(parts).
Seconds coarse_step_bound(const Scenario& scenario, const StageCosts& costs);

/// The same from the schedule: the longest path through all passes of all micro-batches, in each stage's order and from stage to
/// stage, with weights that have to be gathered first and gradients that have to be reduced after. Never below the other bound
/// by more than roundings, and near the simulated time. O(stages * micro-batches * chunks).
Seconds step_bound(const Scenario& scenario, const StageCosts& costs, Schedules& schedules);

/// No simulation of the plan has a lower peak of memory on its fullest stage: weights, gradients and optimizer states, what the
/// micro-batches in flight keep, and what a backward needs more.
struct MemoryBound {
  Bytes peak = 0;
  std::int32_t stage = 0;  ///< that has it
};
MemoryBound memory_bound(const Scenario& scenario, const StageCosts& costs, Schedules& schedules);

}  // namespace tandem::studies
