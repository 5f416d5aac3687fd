#include "runtime/analysis/awaited.h"

#include <cstdint>

#include "runtime/base/radix_sort.h"

namespace tandem {

Awaited::Awaited(const Dag& dag) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (!is_communication(task.op) && task.stream != Stream::host) continue;
    for (const TaskId after : dag.graph.successors(id))
      if (dag.tasks[after].rank == task.rank) edges_.emplace_back(after, id);
  }
  // Those to one task stay in the order of where they come from.
  radix_sort(edges_, [](const Edge& edge) { return std::uint64_t{edge.first}; });
}

}  // namespace tandem
