#pragma once

#include "scenarios/lowering/attend.h"

namespace tandem {

/// Ring attention (Liu et al. 2023): the ranks' keys and values go round, each rank attends to the block at hand while the next
/// one is under way, and merges the outputs by their log-sum-exp. A block that causality hides is passed on without work.
///
/// Forward cp - 1 hops. Backward the keys and values go round once more, and the gradients of a block follow it one hop behind,
/// each rank adding its share, until they come home after cp hops. At most two blocks are here at a time.
Attended ring_attention(Context& context, const Heads& heads);

}  // namespace tandem
