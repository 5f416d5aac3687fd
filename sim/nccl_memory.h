#pragma once

#include "runtime/dag/by_rank.h"
#include "runtime/dag/dag.h"

namespace tandem::sim {

/// Returns the bytes of GPU memory that NCCL takes for the buffers of a rank's communicators: of those that it communicates over
/// in this step, of two members at least.
///
/// A connection has a buffer for each protocol (NVIDIA/nccl, src/init.cc): LL 512 KiB, LL128 4,800 KiB, Simple 4 MiB. On each of
/// its channels (nccl_channels.h) a member has one connection of the ring, and of the tree up and down: with n members the tree
/// has n - 1 edges, so a member has 2 (n - 1) / n of its ends in the mean, which is rounded up. Left out: the buffers of NVLS, of
/// DeepEP, and of sends between members of a larger communicator, which are counted as a communicator of the two for each
/// direction.
///
/// On an unknown architecture nothing is known, and nothing is taken. `tasks`: the DAG's.
Bytes nccl_memory(const Dag& dag, const ByRank& tasks, RankIndex rank);

}  // namespace tandem::sim
