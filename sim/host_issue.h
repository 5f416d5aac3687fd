#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "sim/host_order.h"

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
/// their order (host_order.h), each in its issue_time(), from the site's `overhead` on.
///
///   free(i)   = max(free(i - 1), end of the last task before i that the CPU waits for) + issue time of i
///   issued(i) = free(i), less the issue time of what follows i's first kernel
///
/// A task starts when all it depends on has ended and it is issued. So the CPU's time is hidden as long as it is ahead of the
/// GPU, and the GPU waits where kernels are shorter than what issuing them takes.
class HostIssue {
 public:
  /// The DAG must outlive it.
  explicit HostIssue(const Dag& dag) : HostIssue(std::make_shared<const HostOrder>(dag)) {}
  explicit HostIssue(std::shared_ptr<const HostOrder> order);

  /// Returns whether the date at which the CPU issues the task is known: nothing that the CPU waits for before is still running.
  bool is_dated(TaskId id) const { return issued_[id] != not_dated; }
  /// Returns the date of a dated task.
  Seconds issued(TaskId id) const { return issued_[id]; }

  /// Returns the dates of all tasks, negative where they are not dated.
  std::span<const Seconds> issued() const { return issued_; }
  /// Returns how many of the tasks from `first` to `last`, which are issued in this order, are dated.
  std::size_t dated_among(TaskId first, TaskId last) const;

  /// Asks to be told when a task that is not dated is.
  void await(TaskId id);
  /// Must be told of every task that the CPU may wait for when it ends. Returns those tasks that were awaited and get their dates
  /// by this, of all ranks of its unit, rank by rank in the order in which they are issued.
  const std::vector<TaskId>& ended(TaskId id, Seconds date);

 private:
  static constexpr Seconds not_dated = -1;
  struct Thread {
    HostOrder::Turns turns;
    Seconds free = 0;
    TaskId waits_for = no_id;
    std::vector<TaskId> awaited = {};
  };
  std::shared_ptr<const HostOrder> order_;
  const Dag& dag_;
  const IssueTimes times_;
  std::unordered_map<TaskId, Seconds> arrived_;  ///< receives that the CPU waits for
  std::vector<Thread> of_rank_;
  std::vector<Seconds> issued_;  ///< by task
  std::vector<TaskId> newly_dated_;

  void advance(Thread& thread);
  void tell_of(Thread& thread);
};

}  // namespace tandem::sim
