#pragma once

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// How much a step becomes when it is lowered. Not whole numbers, as they may be larger than any.
struct StepSize {
  double tasks = 0, buffers = 0;
};

/// A step's size before it is lowered:
///
///   the ranks of each stage x (what the step has once + micro-batches x what each of them adds) x steps
///
/// Both addends come from one rank of each stage, of which one micro-batch and two are lowered, so they know every operation.
/// Exact where all micro-batches and all ranks of a stage do the same, in whatever order. They do not: with ZeRO-3, where what is
/// gathered once serves the passes after it; with a load of experts that differs between ranks; and where documents share
/// context-parallel ranks dynamically. Takes as long as three micro-batches of one pipeline do.
struct SizeEstimate {
  StepSize step;
  StepSize lowered;  ///< to find that out
};
SizeEstimate size_of_step(const Scenario& scenario, const World& world, const StepRange& steps = {});

/// What a step does not exceed, for a third of the work: one micro-batch of each stage with what the step has once, twice as
/// often as there are micro-batches. No later micro-batch adds as much as that.
StepSize most_of_step(const Scenario& scenario, const World& world, const StepRange& steps = {});

}  // namespace tandem::scenarios
