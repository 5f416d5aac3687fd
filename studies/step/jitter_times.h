#pragma once

#include "runtime/base/progress.h"
#include "scenarios/spec/scenario.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Draws the steps that `faults.jitter` asks for; returns nothing where the scenario has no jitter. `step` is the step simulated
/// without jitter. Draws as many steps at a time as the machine has threads and, at what simulating `step` took, memory.
std::optional<JitterTimes> draw_jitter(const Scenario& scenario, const Dag& dag, const StepResult& step, Progress* progress);

}  // namespace tandem::studies
