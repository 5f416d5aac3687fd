#include "runtime/executor.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>

#include "runtime/base/countdowns.h"
#include "runtime/base/fetch_ahead.h"
#include "runtime/plan/issue_order.h"

namespace tandem {
namespace {

/// Counts down what each task still waits for, and hands units to the backend as they become ready.
class Run final : public Completions {
 public:
  /// `starts`, `ends`: where dates are noted, or empty.
  Run(const Dag& dag, Backend& backend, std::span<Seconds> starts, std::span<Seconds> ends, EndedTasks* ended)
      : dag_(dag),
        backend_(backend),
        starts_(starts),
        ends_(ends),
        ended_(ended),
        waiting_for_(dag.tasks.size()),
        missing_(dag.groups.size(), 0),
        left_(dag.tasks.size()) {
    for (const TaskId next : dag.graph.targets()) waiting_for_.add_one(next);
    for (GroupId g = 0; g < dag.groups.size(); ++g) missing_[g] = static_cast<std::uint32_t>(dag.members_of(g).size());
  }

  /// Returns when the last task ended.
  Seconds run() {
    count();
    backend_.prepare(dag_, *this);
    ahead_ = backend_.is_started_ahead();
    locks_ = !backend_.has_one_thread();
    if (ahead_) {
      for (const TaskId first : issue_order(dag_)) backend_.start(dag_.unit_of(first));
    } else {
      const std::unique_lock lock = locked();
      // Starting a unit may end others at once, on another thread: collect first what waits for nothing.
      std::vector<TaskId> ready;
      for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
        if (waiting_for_.is_zero(id)) ready.push_back(id);
      }
      for (const TaskId id : ready) release(id);
    }
    backend_.drive();
    if (left_ != 0) throw std::logic_error(stuck_sentence());
    return last_end_;
  }

  void ended(TaskId task, Seconds start, Seconds end) override {
    const std::unique_lock lock = locked();
    const std::span<const TaskId> unit = dag_.unit_of(task);
    left_ -= unit.size();
    last_end_ = std::max(last_end_, end);
    note(unit, start, end);
    count();
    if (ahead_) return;
    for (const TaskId id : unit) {
      for (const TaskId next : dag_.graph.successors(id)) {
        fetch_ahead(waiting_for_, next);
        fetch_ahead(dag_.tasks, next);
        if (waiting_for_.count_down(next)) release(next);
      }
    }
  }

  void passed(TaskId first, std::span<const Seconds> starts, std::span<const Seconds> ends) override {
    const std::unique_lock lock = locked();
    left_ -= ends.size();
    if (starts_.empty()) return;
    std::ranges::copy(starts, starts_.begin() + first);
    std::ranges::copy(ends, ends_.begin() + first);
  }

 private:
  const Dag& dag_;
  Backend& backend_;
  const std::span<Seconds> starts_, ends_;  ///< by task
  EndedTasks* ended_;                       ///< or null
  std::mutex mutex_;
  bool locks_ = true;
  Countdowns waiting_for_;              ///< by task: predecessors that have not ended
  std::vector<std::uint32_t> missing_;  ///< by group: members that are not ready
  std::size_t left_;
  bool ahead_ = false;
  Seconds last_end_ = 0;

  std::unique_lock<std::mutex> locked() { return locks_ ? std::unique_lock(mutex_) : std::unique_lock(mutex_, std::defer_lock); }

  void note(std::span<const TaskId> unit, Seconds start, Seconds end) {
    if (starts_.empty()) return;
    for (const TaskId id : unit) {
      fetch_ahead(starts_, id);
      fetch_ahead(ends_, id);
      starts_[id] = start;
      ends_[id] = end;
    }
  }

  void count() {
    if (ended_ != nullptr) ended_->store(dag_.tasks.size() - left_, std::memory_order_relaxed);
  }

  void release(TaskId id) {
    const GroupId group = dag_.tasks[id].group;
    if (group == no_id || --missing_[group] == 0) backend_.start(dag_.unit_of(id));
  }

  std::string stuck_sentence() const {
    std::string text = "the DAG cannot finish: " + std::to_string(left_) + " tasks wait for each other, among them";
    int named = 0;
    for (TaskId id = 0; id < dag_.tasks.size() && named < 4; ++id) {
      const Task& task = dag_.tasks[id];
      if (task.group == no_id || !waiting_for_.is_zero(id) || missing_[task.group] == 0) continue;
      text += (named++ == 0 ? " " : ", ") + std::string(dag_.name_of_task(id)) + " on rank " +
              std::to_string(dag_.ranks[task.rank].world_rank);
    }
    return text;
  }
};

}  // namespace

Timeline execute(const Dag& dag, Backend& backend, EndedTasks* ended) {
  Timeline timeline;
  timeline.start.assign(dag.tasks.size(), 0);
  timeline.end.assign(dag.tasks.size(), 0);
  execute_into(timeline.start, timeline.end, dag, backend, ended);
  return timeline;
}

void execute_into(std::span<Seconds> start, std::span<Seconds> end, const Dag& dag, Backend& backend, EndedTasks* ended) {
  Run(dag, backend, start, end, ended).run();
}

Seconds last_end_on(const Dag& dag, Backend& backend) { return Run(dag, backend, {}, {}, nullptr).run(); }

}  // namespace tandem
