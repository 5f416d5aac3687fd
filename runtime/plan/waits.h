#pragma once

#include <span>
#include <vector>

#include "runtime/plan/arena.h"

namespace tandem {

/// Says which tasks of other streams a task's stream must wait for before it runs the task, so that all dependencies of the DAG
/// and all reuse of memory are kept. It leaves out what the stream's order keeps, and what follows from earlier waits.
class WaitPlan {
 public:
  /// `order` as issue_order() gives it.
  WaitPlan(const Dag& dag, const std::vector<TaskId>& order, std::span<const ArenaPlan::Wait> reuse);

  std::span<const TaskId> of(TaskId id) const { return {tasks_.data() + begin_[id], tasks_.data() + end_[id]}; }
  bool is_awaited(TaskId id) const { return awaited_[id]; }

 private:
  std::vector<TaskId> tasks_;
  std::vector<std::uint32_t> begin_, end_;  ///< by task, into `tasks_`
  std::vector<bool> awaited_;
};

}  // namespace tandem
