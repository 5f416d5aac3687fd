#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// All edges of the DAG, those that leave task 0 first.
inline std::vector<TaskGraph::Edge> edges_of(const Dag& dag) {
  std::vector<TaskGraph::Edge> edges;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    for (const TaskId next : dag.graph.successors(id)) edges.emplace_back(id, next);
  return edges;
}

}  // namespace tandem
