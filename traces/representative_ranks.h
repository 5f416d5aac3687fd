#pragma once

#include <vector>

#include "traces/trace.h"

namespace tandem::traces {

/// Returns the ranks that a trace shows unless it is told which: all that were lowered when there are at most 64; of more, two of
/// each pipeline stage at most: the first of those that stand for most ranks of the world, and the one that computes longest,
/// where that is over 1 % longer.
std::vector<TracedRank> representative_ranks(const Dag& dag, const Timeline& timeline);

}  // namespace tandem::traces
