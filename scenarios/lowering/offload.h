#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

// Optimizer states in the memory of the host, and Adam on its CPU (Ren et al. 2021, "ZeRO-Offload", section 4; Megatron-Core's
// `--optimizer-cpu-offload`). A slice's gradient goes there in the type in which it was reduced, and its updated weights come
// back in the type in which they are kept: with fp32 gradients and bf16 weights 4 + 2 bytes of each parameter.

/// Updates the part of each bucket whose states the host has, clipped by the gradient norm whose square is `norm`.
///
/// With `training.offload.overlap_optimizer` each bucket's gradient leaves when it is reduced, beside the backward, and weights
/// come back bucket by bucket, while the CPU updates the next. Otherwise all gradients leave after the norm is known, all weights
/// come back after the last update, and nothing is beside that but what the GPU updates itself.
void update_on_host(Context& context, BufferId norm);

}  // namespace tandem::scenarios
