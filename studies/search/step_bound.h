#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "studies/search/stage_costs.h"

namespace tandem::studies {

/// The order of actions on each stage, made once for each schedule and its sizes.
class Schedules {
 public:
  /// Returns the actions by stage.
  const std::vector<std::vector<Action>>& of(const Scenario& scenario, std::int32_t micro_batches);

 private:
  using Key = std::tuple<ScheduleKind, std::int64_t, std::int64_t, std::int32_t, bool>;
  std::map<Key, std::vector<std::vector<Action>>> known_;
};

/// Returns a time that no simulation of the plan beats: the largest, over the stages, of
///
///   the first micro-batch's way there + what the stage computes, pass after pass + the last backward's way to the first stage
///
/// and of the traffic on the stage's data-parallel stream. O(parts).
Seconds coarse_step_bound(const Scenario& scenario, const StageCosts& costs);

/// Returns such a time from the schedule: the longest path through all passes of all micro-batches, in each stage's order and
/// from stage to stage, with weights that have to be gathered first and gradients that have to be reduced after. The result is at
/// least `coarse_step_bound` but for rounding, and near the simulated time. O(stages * micro-batches * chunks).
Seconds step_bound(const Scenario& scenario, const StageCosts& costs, Schedules& schedules);

/// A lower bound of the peak of memory on the plan's fullest stage: weights, gradients and optimizer states, what the
/// micro-batches in flight keep, and what a backward needs beyond that.
struct MemoryBound {
  Bytes peak = 0;
  std::int32_t stage = 0;  ///< the fullest
};
MemoryBound memory_bound(const Scenario& scenario, const StageCosts& costs, Schedules& schedules);

}  // namespace tandem::studies
