#include "runtime/analysis/predecessors.h"

namespace tandem {

Predecessors::Predecessors(const Dag& dag) : begin_(dag.tasks.size() + 1, 0) {
  for (const TaskId next : dag.graph.targets()) ++begin_[next + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  tasks_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const TaskId after : dag.graph.successors(id)) tasks_[next[after]++] = id;
  }
}

}  // namespace tandem
