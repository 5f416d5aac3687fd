#pragma once

#include <optional>

#include "scenarios/reading/load_campaign.h"
#include "scenarios/spec/scenario.h"
#include "studies/step/simulated_step.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Returns the scenario with one node whose GPUs have `factor` of their speed. The node is that of the first rank of the pipeline
/// stage that computes longest, where a slow node costs most.
Scenario with_slow_node(const Scenario& scenario, const StepResult& step, double factor);

/// Simulates a step with such a node and returns how long it takes; nothing where the campaign has no slow nodes. `healthy` is
/// the step without.
std::optional<Seconds> step_with_slow_node(const Campaign& campaign, const StepResult& healthy, const SimulationOptions& options);

}  // namespace tandem::studies
