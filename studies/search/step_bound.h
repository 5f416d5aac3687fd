#pragma once

#include "studies/search/schedules.h"
#include "studies/search/stage_costs.h"

namespace tandem::studies {

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

}  // namespace tandem::studies
