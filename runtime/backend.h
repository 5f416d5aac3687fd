#pragma once

#include <span>

#include "runtime/dag/dag.h"

namespace tandem {

/// Hears from a backend what happened. The executor implements this.
class Completions {
 public:
  /// The unit that contains `task` ended: its successors may start. Calls `Backend::start`. May be called from any thread.
  virtual void ended(TaskId task, Seconds start, Seconds end) = 0;
  /// Kernels numbered from `first` on ended, one after the other, whose only successors the backend has begun by itself (rule 5).
  virtual void passed(TaskId first, std::span<const Seconds> starts, std::span<const Seconds> ends) = 0;

 protected:
  ~Completions() = default;
};

/// Runs units of work. A *unit* is one kernel, or a collective with the tasks of all members that the DAG holds.
///
/// 1. `start` is called once per unit, when all it depends on has ended; the tasks of a stream come one after the other.
/// 2. `start` never blocks, never calls `ended` itself, and keeps no reference to `unit`. It may be called from inside `ended`,
///    on whichever thread called that.
/// 3. `drive` is called once, after the units that depend on nothing were started. It returns when every started unit has ended,
///    those started meanwhile included.
/// 4. A backend decides nothing about order. It reports each unit exactly once.
/// 5. Where a kernel's only successor is a kernel that waits for nothing else, a backend may begin that one by itself when the
///    first has ended: it reports the first by `passed`, at the latest before it reports the second, which is not started.
///
/// A backend of queues that run by themselves (a GPU's streams) is started ahead instead: `start` is called once for every unit
/// in issue_order(), before any has ended, and the backend keeps the dependencies by what its queues wait for (see WaitPlan).
class Backend {
 public:
  virtual ~Backend() = default;
  virtual bool is_started_ahead() const { return false; }
  /// Whether `ended` is called by `drive` alone, on its thread: the executor then needs no lock, which a simulation would take
  /// for every unit.
  virtual bool has_one_thread() const { return false; }
  virtual void prepare(const Dag& dag, Completions& completions) = 0;
  virtual void start(std::span<const TaskId> unit) = 0;
  virtual void drive() = 0;
};

}  // namespace tandem
