#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::studies {

/// Returns what limits a task: see TaskType in viz/src/report.ts.
using BoundOf = std::function<std::string(TaskId)>;

/// Returns the ranks that the page draws, by stage: all ranks, or where there are more than 64 the busiest of each stage.
std::vector<RankIndex> drawn_ranks(const Dag& dag, const Timeline& timeline);

/// Returns the tasks of those ranks, in columns of deflated numbers. What happens more than once in the step is there once.
nlohmann::ordered_json timeline_json(const Dag& dag, const Timeline& timeline, const std::vector<RankIndex>& ranks,
                                     const BoundOf& bound_of);

}  // namespace tandem::studies
