#pragma once

#include "scenarios/spec/scenario.h"
#include "sim/simulate.h"

namespace tandem::studies {

/// Throws InputError, which names the option of the command line, where the scenario has too many ranks to be simulated in this
/// way (not folded; collectives in steps), or faults that cannot be.
void refuse_beyond_limits(const Scenario& scenario, bool folded, Collectives collectives);

}  // namespace tandem::studies
