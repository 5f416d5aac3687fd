#pragma once

#include <algorithm>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// Says when each task of a DAG ran, in seconds since the step began. A member of a collective starts when all members were
/// ready.
struct Timeline {
  std::vector<Seconds> start;
  std::vector<Seconds> end;

  Seconds duration(TaskId id) const { return end[id] - start[id]; }
  Seconds makespan() const { return end.empty() ? 0 : *std::max_element(end.begin(), end.end()); }
};

}  // namespace tandem
