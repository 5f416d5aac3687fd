#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Token ids, target ids or positions [sequence, batch] of the micro-batch being lowered. The global batch is dealt out to the
/// data-parallel ranks in equal runs of sequences, each rank's run to its micro-batches in order.
/// `ahead` shifts tokens and targets: those of so many positions later.
BufferId input(Context& context, InputShard::Content content, std::int32_t ahead = 0);

/// The pixels of the patches of the micro-batch's images: numbers that depend on its first sequence and their place alone.
BufferId patches(Context& context, const Shape& shape);

/// The documents that the micro-batch's sequences are packed of; empty where each is one.
Documents documents(Context& context);

/// The numbers of the micro-batch's sequences in the global batch, [1, batch]: one buffer for all who ask.
BufferId sequence_numbers(Context& context);

}  // namespace tandem::scenarios
