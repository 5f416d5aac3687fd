#pragma once

#include "scenarios/spec/scenario.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// The scenario with one node whose GPUs have `factor` of their speed: that of the first rank of the pipeline stage that computes
/// longest, where a slow node costs most.
Scenario with_slow_node(const Scenario& scenario, const StepResult& step, double factor);

}  // namespace tandem::studies
