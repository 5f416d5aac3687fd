#include "runtime/executor.h"

#include <mutex>
#include <stdexcept>
#include <string>

#include "runtime/base/fetch_ahead.h"
#include "runtime/plan/issue_order.h"

namespace tandem {
namespace {

/// Counts down what each task still waits for, and hands units to the backend as they become ready.
class Run final : public Completions {
 public:
  Run(const Dag& dag, Backend& backend, EndedTasks* ended)
      : dag_(dag),
        backend_(backend),
        ended_(ended),
        waiting_for_(dag.tasks.size(), 0),
        missing_(dag.groups.size(), 0),
        left_(dag.tasks.size()) {
    timeline_.start.assign(dag.tasks.size(), 0);
    timeline_.end.assign(dag.tasks.size(), 0);
    for (const TaskId next : dag.graph.targets()) ++waiting_for_[next];
    for (GroupId g = 0; g < dag.groups.size(); ++g) missing_[g] = static_cast<std::uint32_t>(dag.members_of(g).size());
  }

  Timeline run() {
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
        if (waiting_for_[id] == 0) ready.push_back(id);
      }
      for (const TaskId id : ready) release(id);
    }
    backend_.drive();
    if (left_ != 0) throw std::logic_error(stuck_sentence());
    return std::move(timeline_);
  }

  void ended(TaskId task, Seconds start, Seconds end) override {
    const std::unique_lock lock = locked();
    for (const TaskId id : dag_.unit_of(task)) {
      fetch_ahead(timeline_.start, id);
      fetch_ahead(timeline_.end, id);
      timeline_.start[id] = start;
      timeline_.end[id] = end;
      --left_;
    }
    count();
    if (ahead_) return;
    for (const TaskId id : dag_.unit_of(task)) {
      for (const TaskId next : dag_.graph.successors(id)) {
        fetch_ahead(waiting_for_, next);
        fetch_ahead(dag_.tasks, next);
        if (--waiting_for_[next] == 0) release(next);
      }
    }
  }

 private:
  const Dag& dag_;
  Backend& backend_;
  EndedTasks* ended_;  ///< or null
  std::mutex mutex_;
  bool locks_ = true;
  std::vector<std::uint32_t> waiting_for_;  ///< by task: predecessors that have not ended
  std::vector<std::uint32_t> missing_;      ///< by group: members that are not ready
  std::size_t left_;
  bool ahead_ = false;
  Timeline timeline_;

  std::unique_lock<std::mutex> locked() { return locks_ ? std::unique_lock(mutex_) : std::unique_lock(mutex_, std::defer_lock); }

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
      if (task.group == no_id || waiting_for_[id] != 0 || missing_[task.group] == 0) continue;
      text += (named++ == 0 ? " " : ", ") + std::string(dag_.name_of_task(id)) + " on rank " +
              std::to_string(dag_.ranks[task.rank].world_rank);
    }
    return text;
  }
};

}  // namespace

Timeline execute(const Dag& dag, Backend& backend, EndedTasks* ended) { return Run(dag, backend, ended).run(); }

}  // namespace tandem
