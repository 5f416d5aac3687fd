#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

/// Simulates a step without most periods of its pipeline's steady state, and sums it up with them (sim/steady_state.h). Nothing
/// where the step has too few micro-batches for that, where its schedule has no steady state, or where that has not settled
/// within two fifths of its micro-batches, or a little more than half where these enter at both ends. `dag` and `timeline` are
/// those of the shorter step: `timeline.repeat` says what stands for more.
std::optional<SimulatedStep> simulate_folded_in_time(const Scenario& scenario, const World& world,
                                                     const SimulationOptions& options, const StepRange& steps);

/// A step that was lowered already.
struct LoweredStep {
  const Dag* dag = nullptr;  ///< null: none
  Repeat repeat = {};        ///< of its simulation, where it is a shorter one
};

/// Returns how long a step on this world takes with each of `speedups`, `jobs` of which are simulated at a time: a shorter one
/// where that settles, and otherwise the whole. Each is lowered unless it is the one that is `known`.
std::vector<Seconds> makespans_folded_in_time(const Scenario& scenario, const World& world, const LoweredStep& known,
                                              std::span<const Speedup> speedups, std::size_t jobs);

/// Steps with as few micro-batches as show every collective that the whole step has.
StepRange steps_in_short(const Scenario& scenario);

}  // namespace tandem::studies
