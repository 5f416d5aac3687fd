#pragma once

#include <vector>

#include "studies/recorded/recorded_run.h"
#include "topology/folding.h"

namespace tandem::studies {

/// Returns by class of ranks an order of its program's tasks in which all can run one after the other: no rank waits for others
/// in a circle. Among tasks that could be next it is that which the program has first. Throws InputError where there is no such
/// order, with a task that waits for itself.
std::vector<std::vector<std::uint32_t>> run_order(const RecordedRun& run, const Partition& partition);

}  // namespace tandem::studies
