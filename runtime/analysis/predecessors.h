#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// The DAG's edges the other way round: which tasks a task waits for, in the order of ids.
class Predecessors {
 public:
  explicit Predecessors(const Dag& dag)
      : Predecessors(
            dag, [](TaskId) { return true; }, [](TaskId, TaskId) { return true; }) {}
  /// Those edges alone that come from tasks of which `is_awaited(before)`, and of which `counts(before, after)`.
  Predecessors(const Dag& dag, const auto& is_awaited, const auto& counts) {
    const auto for_each = [&](const auto& visit) {
      for (TaskId before = 0; before < dag.tasks.size(); ++before) {
        if (!is_awaited(before)) continue;
        for (const TaskId after : dag.graph.successors(before))
          if (counts(before, after)) visit(before, after);
      }
    };
    // A task's offset stands one place further on until all edges to it are there: so it says where the next one goes.
    begin_.assign(dag.tasks.size() + 2, 0);
    for_each([&](TaskId, TaskId after) { ++begin_[after + 2]; });
    for (std::size_t i = 2; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    tasks_.resize(begin_.back());
    for_each([&](TaskId before, TaskId after) { tasks_[begin_[after + 1]++] = before; });
  }

  std::span<const TaskId> of(TaskId id) const { return {tasks_.data() + begin_[id], tasks_.data() + begin_[id + 1]}; }

 private:
  std::vector<std::uint32_t> begin_;  ///< by task, and where the last one's end
  std::vector<TaskId> tasks_;
};

}  // namespace tandem
