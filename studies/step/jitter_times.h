#pragma once

#include "runtime/base/progress.h"
#include "scenarios/spec/scenario.h"
#include "sim/jitter.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

/// What `faults.jitter` says, as the simulator takes it.
Variation variation_of(const JitterSpec& jitter);

/// Returns as many steps at a time as the machine has threads and, at what simulating `step` took, memory.
std::size_t draws_at_a_time(const StepResult& step);

/// Draws the steps that `faults.jitter` asks for; returns nothing where the scenario has no jitter. `step` is the step simulated
/// without jitter, its collectives played like this.
std::optional<JitterTimes> draw_jitter(const Scenario& scenario, const SimulatedStep& step, Collectives collectives,
                                       Progress* progress);

}  // namespace tandem::studies
