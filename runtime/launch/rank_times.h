#pragma once

#include <string>
#include <vector>

#include "runtime/dag/timeline.h"

namespace tandem {

/// When the tasks of one rank ran, as its process sends it to rank 0.
std::string own_times(const Dag& dag, RankIndex rank, const Timeline& timeline);

/// What all ranks have sent, by rank: each task by the clock of its own process. Throws std::runtime_error where that is not of
/// the rank's tasks.
Timeline times_of_all(const Dag& dag, const std::vector<std::string>& by_rank);

}  // namespace tandem
