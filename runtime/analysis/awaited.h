#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// What tasks wait for that may be exposed on their ranks: communications, and what the host computes. Few edges are of these.
class Awaited {
 public:
  explicit Awaited(const Dag& dag);

  /// Returns the edges to a task, by where they come from.
  auto by(TaskId id) const { return std::ranges::equal_range(edges_, id, {}, &Edge::first); }

 private:
  using Edge = std::pair<TaskId, TaskId>;  ///< the one that waits, and what it waits for
  std::vector<Edge> edges_;
};

}  // namespace tandem
