#pragma once

#include "scenarios/lowering/context.h"

namespace tandem {

/// Token ids, target ids or positions [sequence, batch] of the micro-batch being lowered. The global batch is dealt out to the
/// data-parallel ranks in equal runs of sequences, each rank's run to its micro-batches in order.
BufferId input(Context& context, InputShard::Content content);

}  // namespace tandem
