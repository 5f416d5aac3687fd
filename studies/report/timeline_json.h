#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "studies/report/drawn_rows.h"

namespace tandem::studies {

/// Returns what limits a task: see TaskType in viz/src/report.ts.
using BoundOf = std::function<std::string(TaskId)>;

/// Returns the tasks of these rows, in columns of deflated numbers. What happens more than once in the step is there once, and so
/// is what a stage and its mirror both do.
nlohmann::ordered_json timeline_json(const Dag& dag, const Timeline& timeline, const std::vector<DrawnRow>& drawn,
                                     const BoundOf& bound_of);

}  // namespace tandem::studies
