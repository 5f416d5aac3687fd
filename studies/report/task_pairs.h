#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::studies {

/// Returns the simulated and the measured time of every task, with the task's kind. Of more than 20,000 tasks, takes every n-th
/// of each kind.
nlohmann::ordered_json task_pairs(const Dag& dag, const Timeline& simulated, const Timeline& measured);

}  // namespace tandem::studies
