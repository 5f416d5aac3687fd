#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::studies {

/// What every task took, simulated and measured, with its kind; of more than 20,000 tasks every n-th of each kind.
nlohmann::ordered_json task_pairs(const Dag& dag, const Timeline& simulated, const Timeline& measured);

}  // namespace tandem::studies
