#pragma once

#include "scenarios/lowering/attend.h"

namespace tandem::scenarios {

/// Ulysses inside groups of neighbours, a ring between the groups (USP, Fang and Zhao 2024, arXiv 2405.07719; `a2a+p2p` of
/// Megatron-Core with `hierarchical_context_parallel_sizes`): an all-to-all turns the ranks' positions with all heads into the
/// group's positions with some heads, which then go round, and another turns the outputs back. A kernel before each all-to-all
/// puts what each rank gets together, one behind it puts what came in the order of the sequence.
Attended ulysses_ring_attention(Context& context, const Heads& heads);

}  // namespace tandem::scenarios
