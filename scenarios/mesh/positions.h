#pragma once

#include "runtime/ops/attributes.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Returns which of `length` positions each of so many ranks holds that share them.
///
///   contiguous   the rank-th of cp equal runs: the last rank's queries see 2 cp - 1 times as many keys as the first's
///   zigzag       chunks rank and 2 cp - 1 - rank of 2 cp: equal work for all, and for each pair of ranks (Llama 3,
///   section 3.3.2)
///   document-zigzag  the same chunks, of a sequence that holds the parts of its documents one after the other (`Documents`):
///   those chunks of each document, as in Megatron-Core (tex.thd_get_partitioned_indices of Transformer Engine)
Positions share_of_positions(std::int64_t length, bool zigzag, std::int64_t rank, std::int64_t ranks);

/// Returns those of a sequence that a context-parallel rank holds, where all of them share each.
Positions positions_of(const Scenario& scenario, std::int64_t cp_rank);

/// Returns all of `length` positions.
Positions whole_run(std::int64_t length);

/// Returns the same positions of what begins so many positions later.
Positions moved(const Positions& positions, std::int64_t by);

/// Returns `count` of the positions, from the `first` of them on.
Positions positions_among(const Positions& positions, std::int64_t first, std::int64_t count);

}  // namespace tandem::scenarios
