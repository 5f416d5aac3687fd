#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

// Which ranks share weights, and how gradients and slices travel between them. There are three arrangements:
//
//               gradients to their owner                        slices to all
//   one piece   all-reduce (ZeRO-0), or reduce-scatter          all-gather
//   HSDP        reduce-scatter in the block, all-reduce         all-gather in the block
//               across blocks
//   hierarchy   reduce-scatter in the node, then across nodes   all-gather across nodes, then in the node
//               (ZeRO-0: all-reduce across nodes, all-gather
//               in the node)
//
// Experts' weights are shared by fewer ranks, in one piece. `kind` tells which of the two.

const Ownership& ownership_of(const Context& context, ParameterKind kind);

/// The communicator of all ranks that share weights, where they are reduced in one piece; and that of the same ranks where each
/// sends to each.
Slot data_slot(ParameterKind kind);
Slot data_exchange_slot(ParameterKind kind);

bool shares_weights(const Context& context, ParameterKind kind);

/// Sums `whole` over all ranks that share weights, so that `slice`, this rank's part of it or a buffer like that, is complete.
/// Returns the last task; `no_id` where nobody shares them.
TaskId reduce_to_slices(Context& context, ParameterKind kind, BufferId whole, BufferId slice);

/// Gathers every owner's slice into `whole`. Returns the first task.
TaskId gather_slices(Context& context, ParameterKind kind, BufferId slice, BufferId whole);

/// Adds `numbers` up over the ranks among which a bucket is dealt out in slices, each of which has those of its own slice.
void add_up_slices(Context& context, ParameterKind kind, BufferId numbers, std::string_view name);

}  // namespace tandem::scenarios
