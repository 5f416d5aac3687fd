#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/dag/dag.h"
#include "traces/trace.h"

namespace tandem::studies {

/// Reads a list of ranks of the world and ranges of them, such as "0,5,16-31", as --trace-ranks takes it. Returns the ranks in
/// ascending order, each once. Throws InputError where the text is no such list, or where a world of `world` ranks lacks one.
std::vector<std::uint32_t> parse_ranks(std::string_view list, std::int64_t world);

/// Returns the lowered ranks that stand for these ranks of the world, each once. `class_of` says for each rank of the world which
/// lowered rank stands for it; empty where every rank was lowered.
std::vector<TracedRank> traced_ranks(const Dag& dag, std::span<const RankIndex> class_of,
                                     std::span<const std::uint32_t> world_ranks);

}  // namespace tandem::studies
