#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Returns the units of a DAG, each by its first task, in an order in which they can be put into queues: each after all it
/// depends on. The order is the same on every rank, so that collectives which share ranks are issued in one order and cannot wait
/// for each other in a circle.
///
/// Ranks advance side by side: of what could be issued, the unit whose tasks come earliest in the order of lowering. Throws
/// std::logic_error if the DAG cannot finish.
std::vector<TaskId> issue_order(const Dag& dag);

}  // namespace tandem
