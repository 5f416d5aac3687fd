#pragma once

#include "studies/step/step_result.h"
#include "cli/terminal/progress.h"
#include "scenarios/spec/scenario.h"

namespace tandem {

/// Draws the steps that `faults.jitter` asks for; none where it does not. `step` is what was simulated without. As many at a time
/// as the machine has threads and, going by what that one took, memory.
std::optional<JitterTimes> draw_jitter(const Scenario& scenario, const Dag& dag, const StepResult& step, ProgressBar* bar);

}  // namespace tandem
