#pragma once

#include "runtime/ops/attributes.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Returns the positions of a sequence that a context-parallel rank holds.
///
///   contiguous   the rank-th of cp equal runs: the last rank's queries see 2 cp - 1 times as many keys as the first's
///   zigzag       chunks rank and 2 cp - 1 - rank of 2 cp: equal work for all, and for each pair of ranks (Llama 3,
///   section 3.3.2)
///   document-zigzag  the same chunks, of a sequence that holds the parts of its documents one after the other (`Documents`):
///   those chunks of each document, as in Megatron-Core (tex.thd_get_partitioned_indices of Transformer Engine)
Positions positions_of(const Scenario& scenario, std::int64_t cp_rank);

/// Returns those that all ranks of a group hold which deal out heads among them: what the group's place in the ring of groups is
/// to hold by the same rule.
Positions ring_positions(const Scenario& scenario, std::int64_t ring_rank);

/// Returns all positions of a sequence.
Positions whole_sequence(const Scenario& scenario);

/// Returns `count` of the positions, from the `first` of them on.
Positions positions_among(const Positions& positions, std::int64_t first, std::int64_t count);

}  // namespace tandem::scenarios
