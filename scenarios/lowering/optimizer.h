#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Sets the current chunk's gradients to zero, before its first backward.
void clear_gradients(Context& context);

/// Ends the step on reduced gradients: adds up the parts that tensor-parallel ranks and tied stages hold of the same parameters,
/// moves the biases of experts (see expert_bias.h), takes the global gradient norm, and lets Adam (for matrices inside the
/// layers Muon) or Adafactor update what this rank owns, with gradients clipped by that norm.
void update_parameters(Context& context);

}  // namespace tandem::scenarios
