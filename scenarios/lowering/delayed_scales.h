#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

// Delayed scaling (training.recipe): a tensor's scale is made of the maxima of earlier passes, which Transformer Engine takes
// over all ranks that the scale is for (pytorch/fp8.py, reduce_and_update_fp8_tensors): after a chunk's forward, when it leaves
// the layers, and after its backward, when it has come through the first. The maxima are concatenated, all-reduced, and made into
// scales, and the rank's next kernel comes after. Where a step is executed a scale is made of the tensor itself, so these are
// zeros.

/// Lowers that for what was cast since it last was (`Context::casts`), where the framework does it.
void reduce_amax(Context& context);

}  // namespace tandem::scenarios
