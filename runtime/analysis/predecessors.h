#pragma once

#include <span>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// The DAG's edges the other way round: which tasks a task waits for.
class Predecessors {
 public:
  explicit Predecessors(const Dag& dag);
  std::span<const TaskId> of(TaskId id) const { return {tasks_.data() + begin_[id], tasks_.data() + begin_[id + 1]}; }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<TaskId> tasks_;
};

}  // namespace tandem
