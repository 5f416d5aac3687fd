#pragma once

#include <string>
#include <vector>

#include "runtime/dag/timeline.h"

namespace tandem {

/// When the tasks of one rank ran, as its process sends it to rank 0.
std::string own_times(const Dag& dag, RankIndex rank, const Timeline& timeline);

/// Merges what all ranks have sent, by rank, with each task's times by the clock of its own process. Throws std::runtime_error
/// where a rank's times are not those of its tasks.
Timeline times_of_all(const Dag& dag, const std::vector<std::string>& by_rank);

}  // namespace tandem
