#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Sets the current chunk's gradients to zero, before its first backward.
void clear_gradients(Context& context);

/// Ends the step on reduced gradients: adds up the parts that tensor-parallel ranks and tied stages hold of the same parameters,
/// takes the global gradient norm, and lets Adam, or for matrices inside the layers Muon, update what this rank owns, with
/// gradients clipped by that norm.
void update_parameters(Context& context);

}  // namespace tandem::scenarios
