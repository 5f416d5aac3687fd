#pragma once

#include "runtime/base/progress.h"
#include "scenarios/spec/scenario.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Draws the steps that `faults.jitter` asks for; none where it does not. `step` is what was simulated without. As many at a time
/// as the machine has threads and, going by what that one took, memory.
std::optional<JitterTimes> draw_jitter(const Scenario& scenario, const Dag& dag, const StepResult& step, Progress* progress);

}  // namespace tandem::studies
