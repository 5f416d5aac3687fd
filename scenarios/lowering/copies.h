#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Adds up, after the data-parallel reduction, the gradients of parameters that the pipeline's placement keeps twice: those of
/// both copies of the model, over the mirrored stages (dualpipe), and those of the tied embedding where two chunks of one stage
/// hold it.
void add_up_copies(Context& context);

}  // namespace tandem::scenarios
