#include "runtime/analysis/predecessors.h"

namespace tandem {

Predecessors::Predecessors(const Dag& dag) : begin_(dag.tasks.size() + 1, 0) {
  for (auto [edge, last] = boost::edges(dag.graph); edge != last; ++edge) ++begin_[boost::target(*edge, dag.graph) + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
  tasks_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (auto [edge, last] = boost::edges(dag.graph); edge != last; ++edge) {
    tasks_[next[boost::target(*edge, dag.graph)]++] = static_cast<TaskId>(boost::source(*edge, dag.graph));
  }
}

}  // namespace tandem
