#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::sim {

/// Whether kernels never wait for the CPU: issuing them costs nothing, and nothing passes before a step.
bool issues_for_free(const Dag& dag);

/// Returns what passes before any rank issues its first kernel: the longest overhead of a site, of all steps of the DAG.
Seconds before_first_kernel(const Dag& dag);

/// Returns the time that the CPU takes to issue a task, with the framework's extra kernels.
Seconds issue_time(const Dag& dag, TaskId id);

/// Returns the same of a task's first kernel: where each expert has one, the GPU begins with it while others are issued.
Seconds first_issue_time(const Dag& dag, TaskId id);

/// The two together: of a task's first kernel, and of those that follow.
struct IssueTime {
  Seconds first = 0, rest = 0;
  Seconds all() const { return first + rest; }
};

/// The issue times of a DAG's tasks, those of its kernels worked out once. The DAG must outlive it.
class IssueTimes {
 public:
  explicit IssueTimes(const Dag& dag);
  IssueTime of(TaskId id) const;

 private:
  const Dag& dag_;
  const bool is_free_;
  std::vector<IssueTime> of_kernel_;
};

/// Returns the issue time of all tasks of each rank together, but for what follows the first kernel of one: no step is shorter
std::vector<Seconds> issue_times(const Dag& dag, const Timeline& timeline = {});

/// Says when each rank's CPU puts its kernels into the GPU's queues. One CPU thread issues a rank's tasks one after the other, in
/// the order of lowering, each in its issue_time(), from the site's `overhead` on. Receives from other stages alone come before
/// their turn: behind the last kernel that must end before they are posted, as `batch_isend_irecv` has it.
///
///   free(i)   = max(free(i - 1), end of the last task before i that the CPU waits for) + issue time of i
///   issued(i) = free(i), less the issue time of what follows i's first kernel
///
/// The CPU waits for a receive where it stands in the order of lowering: with the pass that needs it.
///
/// A task starts when all it depends on has ended and it is issued. So the CPU's time is hidden as long as it is ahead of the
/// GPU, and the GPU waits where kernels are shorter than what issuing them takes.
class HostIssue {
 public:
  /// The DAG must outlive it.
  explicit HostIssue(const Dag& dag);

  /// Returns whether the date at which the CPU issues the task is known: nothing that the CPU waits for before is still running.
  bool is_dated(TaskId id) const { return place_[id] < of_rank_[dag_.tasks[id].rank].dated; }
  /// Returns the date of a dated task.
  Seconds issued(TaskId id) const { return issued_[id]; }

  /// Must be told of every task that ends. Returns the tasks that get their dates by this, of all ranks of its unit.
  const std::vector<TaskId>& ended(TaskId id, Seconds date);

 private:
  struct Thread {
    std::vector<TaskId> order;  ///< twice what is waited for later than it is issued
    std::size_t dated = 0;      ///< so many of `order` are done
    Seconds free = 0;
    TaskId waits_for = no_id;
  };
  const Dag& dag_;
  const IssueTimes times_;
  std::vector<bool> waited_for_;                 ///< by kind of operation; see waits_for()
  std::unordered_set<TaskId> dispatches_;        ///< that the CPU waits for
  std::unordered_map<TaskId, Seconds> arrived_;  ///< receives that the CPU waits for
  std::vector<Thread> of_rank_;
  std::vector<std::uint32_t> place_;  ///< by task, in its rank's order
  std::vector<Seconds> issued_;
  std::vector<TaskId> newly_dated_;

  void put_in_order();
  /// Of a pass's exchanges, the first after the router's is the dispatch.
  void find_dispatches();
  bool waits_for(TaskId id) const;
  void advance(Thread& thread);
};

}  // namespace tandem::sim
