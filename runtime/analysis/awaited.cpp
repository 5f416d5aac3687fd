#include "runtime/analysis/awaited.h"

namespace tandem {

Predecessors awaited_by(const Dag& dag) {
  const auto may_be_exposed = [&](TaskId id) {
    const Task task = dag.tasks[id];
    return is_communication(task.op) || task.stream == Stream::host;
  };
  return {dag, may_be_exposed, [&](TaskId before, TaskId after) { return dag.tasks[before].rank == dag.tasks[after].rank; }};
}

}  // namespace tandem
