#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "runtime/dag/by_rank.h"
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

  /// What a rank's CPU does next. What is waited for later than it is issued has two turns.
  struct Turn {
    TaskId task = no_id;  ///< no_id: there is nothing more
    bool issues = false;  ///< the task
    bool waits = false;   ///< then, until the task ends
  };
  /// The turns of a rank's CPU, one after the other.
  class Turns {
   public:
    Turns() = default;
    /// The order must outlive it.
    Turns(const HostOrder& order, RankIndex rank) : order_(&order), rank_(rank) {}
    Turn next();

   private:
    const HostOrder* order_ = nullptr;
    RankIndex rank_ = 0;
    std::size_t task_ = 0, posted_ = 0;  ///< the next ones of the rank
    std::int64_t last_ = before_all;     ///< in the order of lowering, that had its turn
  };
  Turns turns(RankIndex rank) const { return {*this, rank}; }
  /// Whether the CPU of their rank issues one task before another.
  bool is_issued_before(TaskId one, TaskId other) const { return place_of(one) < place_of(other); }
  bool waits_for(TaskId id) const;

 private:
  static constexpr std::int64_t before_all = -1;
  /// A receive from another stage.
  struct Posted {
    std::int64_t behind = before_all;  ///< the last kernel of its rank that ends before it is posted
    TaskId receive = 0;
    auto operator<=>(const Posted&) const = default;
  };

  const Dag& dag_;
  const ByRank tasks_;
  std::vector<bool> waited_for_;             ///< by kind of operation; see waits_for()
  std::unordered_set<TaskId> dispatches_;    ///< that the CPU waits for
  std::vector<Posted> receives_;             ///< by their numbers
  std::vector<std::vector<Posted>> posted_;  ///< of each rank, in their order

  void find_receives();
  void find_dispatches();
  /// Behind what a task is issued, and which of what is behind that it is.
  Posted place_of(TaskId id) const;
};

/// Whether a task is a receive from another pipeline stage.
bool is_from_another_stage(const Task& task);

}  // namespace tandem::sim
