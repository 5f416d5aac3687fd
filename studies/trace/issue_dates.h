#pragma once

#include <functional>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "traces/trace.h"

namespace tandem::studies {

/// Returns when the CPU of each task's rank issued it in a simulated step (sim/host_issue.h); an empty function where issuing
/// costs nothing.
std::function<Issued(TaskId)> issue_dates(const Dag& dag, const Timeline& timeline);

}  // namespace tandem::studies
