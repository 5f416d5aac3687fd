#pragma once

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"
#include "sim/simulate.h"

namespace tandem::studies {

/// Throws InputError, which names the option of the command line, where the scenario has too many ranks to be simulated in this
/// way (not folded; collectives in steps), or faults that cannot be.
void refuse_beyond_limits(const Scenario& scenario, bool folded, Collectives collectives);

/// What a step takes of this machine, before it is lowered.
struct StepCost {
  double tasks = 0, buffers = 0;
  double memory = 0;  ///< bytes, of the fullest of the processes
  Seconds time = 0;   ///< from the rate at which this machine lowered the parts that the estimate comes from
};
StepCost cost_of_step(const Scenario& scenario, const World& world, const StepRange& steps = {});

/// Throws InputError where lowering, and simulating, `world` would take more memory than this process may (memory_limit.h), or
/// more tasks and buffers than a graph can number.
void refuse_too_large_step(const Scenario& scenario, const World& world, const StepRange& steps = {});

/// Does that, then lowers.
Dag lower_within_limits(const Scenario& scenario, const World& world, const StepRange& steps = {});

}  // namespace tandem::studies
