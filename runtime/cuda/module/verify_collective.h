#pragma once

#include <driver_types.h>

#include <functional>

#include "runtime/dag/dag.h"

namespace tandem {

/// Of a buffer, in the GPU's memory.
using AddressOf = std::function<void*(BufferId)>;

/// Fills the buffers of one member of a collective with what predictable_contents.h says, in their own types, on the stream, and
/// with NaN (bytes of 0xFF) where nothing is known yet. Takes a bounded amount of the host's memory.
void write_crafted_contents(const Dag& dag, TaskId member, const AddressOf& address, cudaStream_t stream);

/// Compares what the member got. Throws std::runtime_error for the first element that is another: with the collective, the
/// communicator, the rank, the element, what was found and what was expected.
void expect_crafted_result(const Dag& dag, TaskId member, const AddressOf& address, cudaStream_t stream);

/// Does both for one member's part in a collective between processes, and calls `carry_out` between them, which returns when the
/// collective has ended.
void verify_collective(const Dag& dag, TaskId member, const AddressOf& address, cudaStream_t stream,
                       const std::function<void()>& carry_out);

}  // namespace tandem
