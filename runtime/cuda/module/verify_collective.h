#pragma once

#include <driver_types.h>

#include <functional>

#include "runtime/dag/dag.h"

namespace tandem {

/// One member's part in a collective between processes, on predictable_contents.h in the DAG's own buffers: fills them on the
/// stream, NaN (bytes of 0xFF) where nothing is known yet, calls `carry_out`, which returns when the collective has ended, and
/// compares what arrived. Takes a bounded amount of the host's memory.
/// Throws std::runtime_error for the first element that is another: with the collective, the communicator, the rank, the element,
/// what was found and what was expected.
void verify_collective(const Dag& dag, TaskId member, const std::function<void*(BufferId)>& address, cudaStream_t stream,
                       const std::function<void()>& carry_out);

}  // namespace tandem
