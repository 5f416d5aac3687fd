#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::sim {

/// The order in which each rank's CPU issues its tasks, and what it waits for: the same in every simulation of a DAG. Tasks are
/// in the order of lowering, but for receives from other stages: these come behind the last kernel that must end before they are
/// posted, as `batch_isend_irecv` has it. The CPU waits for a receive where it stands in the order of lowering.
class HostOrder {
 public:
  /// The DAG must outlive it.
  explicit HostOrder(const Dag& dag);

  const Dag& dag() const { return dag_; }
  /// Returns the turns of a rank's CPU. What is waited for later than it is issued has two.
  std::span<const TaskId> turns(RankIndex rank) const { return of_rank_[rank]; }
  /// Returns the turn of its rank's CPU in which a task is issued.
  std::uint32_t turn_of(TaskId id) const { return turn_[id]; }
  bool waits_for(TaskId id) const;

 private:
  const Dag& dag_;
  std::vector<bool> waited_for_;           ///< by kind of operation; see waits_for()
  std::unordered_set<TaskId> dispatches_;  ///< that the CPU waits for
  std::vector<std::vector<TaskId>> of_rank_;
  std::vector<std::uint32_t> turn_;  ///< by task

  void put_in_order();
  void find_dispatches();
};

/// Whether a task is a receive from another pipeline stage.
bool is_from_another_stage(const Task& task);

}  // namespace tandem::sim
