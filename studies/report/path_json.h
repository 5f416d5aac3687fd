#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "studies/report/drawn_rows.h"

namespace tandem::studies {

/// Returns the critical path for the page, a column for each number of its segments. `drawn` are the rows of the timeline.
nlohmann::ordered_json path_json(const Dag& dag, const Timeline& timeline, const std::vector<DrawnRow>& drawn);

}  // namespace tandem::studies
