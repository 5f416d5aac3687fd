#include "runtime/analysis/time_parts.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/analysis/awaited.h"

namespace tandem {
namespace {

std::size_t exposed_axis(const Task& task) {
  return static_cast<std::size_t>(task.stream == Stream::host ? Axis::host : task.axis);
}

class RankAccount {
 public:
  RankAccount(const Dag& dag, const Timeline& timeline, const Predecessors& awaited)
      : dag_(dag), timeline_(timeline), awaited_(awaited) {}

  /// The rank ran nothing on its compute stream in [from, to), as often as `waiter`, which ended the wait, runs.
  void add_gap(Seconds from, Seconds to, TaskId waiter) {
    const double times = timeline_.times(waiter);
    while (to > from) {
      const TaskId cause = last_communication_before(waiter);
      if (cause == no_id) break;
      const Seconds end = std::min(timeline_.end[cause], to);
      const Seconds start = std::max(timeline_.start[cause], from);
      if (end <= from) break;
      parts.bubble += times * (to - end);
      parts.exposed[exposed_axis(dag_.tasks[cause])] += times * (end - start);
      to = start;
      waiter = cause;
    }
    parts.bubble += times * (to - from);
  }

  TimeParts parts;

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  const Predecessors& awaited_;

  /// Of the communications, and what the host computes, on the same rank that `task` waited for, the one that ended last.
  TaskId last_communication_before(TaskId task) const {
    TaskId last = no_id;
    for (const TaskId before : awaited_.of(task))
      if (last == no_id || timeline_.end[before] > timeline_.end[last]) last = before;
    return last;
  }
};

}  // namespace

Seconds TimeParts::total() const {
  return compute() + optimizer() + bubble + std::accumulate(exposed.begin(), exposed.end(), Seconds{0});
}

Seconds TimeParts::compute() const {
  return in_phase(Phase::forward) + in_phase(Phase::backward_input) + in_phase(Phase::backward_weight) +
         in_phase(Phase::recompute);
}

void TimeParts::add(const TimeParts& other, double times) {
  for (std::size_t phase = 0; phase < phase_count; ++phase) kernels[phase] += times * other.kernels[phase];
  bubble += times * other.bubble;
  for (std::size_t axis = 0; axis < axis_count; ++axis) exposed[axis] += times * other.exposed[axis];
}

std::vector<TimeParts> time_parts(const Dag& dag, const Timeline& timeline) { return time_parts(dag, timeline, awaited_by(dag)); }

std::vector<TimeParts> time_parts(const Dag& dag, const Timeline& timeline, const Predecessors& awaited) {
  std::vector<RankAccount> accounts(dag.ranks.size(), RankAccount(dag, timeline, awaited));
  std::vector<Seconds> busy_until(dag.ranks.size(), 0);
  std::vector<TaskId> last_to_end(dag.ranks.size(), no_id);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    TaskId& last = last_to_end[task.rank];
    if (last == no_id || timeline.end[id] > timeline.end[last]) last = id;
    if (task.stream != Stream::compute) continue;
    RankAccount& account = accounts[task.rank];
    account.add_gap(busy_until[task.rank], timeline.start[id], id);
    busy_until[task.rank] = timeline.end[id];
    account.parts.kernels[static_cast<std::size_t>(task.phase)] += timeline.times(id) * timeline.duration(id);
  }

  const Seconds step = timeline.last_end();
  std::vector<TimeParts> parts;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    RankAccount& account = accounts[rank];
    // After the last kernel: a communication that still runs is exposed, then the rank waits for the others.
    const TaskId last = last_to_end[rank];
    if (last != no_id && timeline.end[last] > busy_until[rank]) {
      const Seconds end = timeline.end[last];
      const Seconds start = std::max(timeline.start[last], busy_until[rank]);
      account.parts.exposed[exposed_axis(dag.tasks[last])] += end - start;
      account.add_gap(busy_until[rank], start, last);
      account.parts.bubble += step - end;
    } else {
      account.parts.bubble += step - busy_until[rank];
    }
    parts.push_back(account.parts);
  }
  return parts;
}

TimeParts mean_over_ranks(const Dag& dag, const std::vector<TimeParts>& parts) {
  TimeParts mean;
  double ranks = 0;
  for (const Rank& rank : dag.ranks) ranks += rank.count;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) mean.add(parts[rank], dag.ranks[rank].count / ranks);
  return mean;
}

std::vector<StageTime> mean_by_stage(const Dag& dag, const std::vector<TimeParts>& parts) {
  std::vector<StageTime> stages(static_cast<std::size_t>(dag.info.stages));
  const auto for_each_share = [&](const auto& visit) {
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank)
      for (const auto& [stage, ranks] : dag.ranks[rank].by_stage(dag.info.stages))
        if (ranks > 0) visit(stages[static_cast<std::size_t>(stage)], rank, ranks);
  };
  for_each_share([](StageTime& stage, RankIndex /*rank*/, std::uint32_t ranks) { stage.ranks += ranks; });
  for_each_share([&](StageTime& stage, RankIndex rank, std::uint32_t ranks) {
    stage.parts.add(parts[rank], ranks / static_cast<double>(stage.ranks));
  });
  return stages;
}

}  // namespace tandem
