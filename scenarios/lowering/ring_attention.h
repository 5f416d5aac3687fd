#pragma once

#include "scenarios/lowering/passed_keys.h"

namespace tandem::scenarios {

/// Ring attention (Liu et al. 2023): what ranks pass on of their keys and values goes round, each rank attends to the block at
/// hand while the next one is under way, and merges the outputs by their log-sum-exp. A block that causality hides is passed on
/// without work.
///
/// Forward cp - 1 hops. Backward the blocks go round once more, and the gradients of a block follow it one hop behind, each rank
/// adding its share, until they come home after cp hops. At most two blocks are here at a time.
AttendedAcross ring_attention(Context& context, const Attending& mine, const KeyMaking& making);

/// Returns how many of the cp blocks this rank's queries see a part of in a layer of this kind.
int visible_blocks(const Context& context, Mixer mixer);

}  // namespace tandem::scenarios
