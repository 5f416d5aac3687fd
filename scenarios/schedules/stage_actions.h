#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

/// Whether forwards run beside backwards: because the schedule always does that, or because it hides the experts' exchanges so.
bool pairs_passes(const Scenario& scenario);

/// Returns what pipeline stage `stage` of the scenario computes in a step of so many micro-batches, in order.
std::vector<Action> stage_actions(const Scenario& scenario, std::int32_t stage, std::int32_t micro_batches);

}  // namespace tandem::scenarios
