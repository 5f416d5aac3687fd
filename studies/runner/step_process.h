#pragma once

#include "runtime/base/stopwatch.h"
#include "scenarios/spec/scenario.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

/// Returns the result of simulate_in_full, which a forked child of this process finds and sends back. The child simulates the
/// step itself and then ends, so no timeline is copied from process to process (sim::simulate_here), and this one may simulate
/// afterwards. Throws what simulate_in_full throws, and std::runtime_error where the child dies.
StepResult result_from_child(const Scenario& scenario, bool folded, const SimulationOptions& options, const Stopwatch& stopwatch);

}  // namespace tandem::studies
