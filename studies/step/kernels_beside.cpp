#include "studies/step/kernels_beside.h"

#include <algorithm>

#include "sim/contention.h"

namespace tandem::studies {

KernelsBeside::KernelsBeside(const Dag& dag, const Timeline& timeline, sim::CollectiveCosts& costs, Seconds shortest)
    : dag_(dag), timeline_(timeline), costs_(costs), times_(dag), shortest_(shortest), ranks_(dag.ranks.size()) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    OfRank& rank = ranks_[task.rank];
    (is_communication(task.op) ? rank.communication : rank.kernels)[static_cast<std::size_t>(task.stream)].push_back(id);
  }
}

KernelsBeside::Place KernelsBeside::first_after(const std::vector<TaskId>& tasks, Seconds date) const {
  return std::ranges::upper_bound(tasks, date + shortest_, {}, [&](TaskId id) { return timeline_.end[id]; });
}

std::vector<TaskId> KernelsBeside::kernels(RankIndex rank, Seconds from, Seconds to) const {
  std::vector<TaskId> found;
  for (std::size_t stream = 0; stream < stream_count; ++stream) {
    if (static_cast<Stream>(stream) == Stream::host) continue;
    const std::vector<TaskId>& tasks = ranks_[rank].kernels[stream];
    for (Place at = first_after(tasks, from); at != tasks.end() && timeline_.start[*at] <= to + shortest_; ++at)
      found.push_back(*at);
  }
  return found;
}

Seconds KernelsBeside::next_kernel(RankIndex rank, Seconds date) const {
  Seconds next = never;
  for (std::size_t stream = 0; stream < stream_count; ++stream) {
    if (static_cast<Stream>(stream) == Stream::host) continue;
    const std::vector<TaskId>& tasks = ranks_[rank].kernels[stream];
    const auto at = std::ranges::upper_bound(tasks, date + shortest_, {}, [&](TaskId id) { return timeline_.start[id]; });
    if (at != tasks.end()) next = std::min(next, timeline_.start[*at]);
  }
  return next;
}

std::vector<TaskId> KernelsBeside::communication(RankIndex rank, Seconds date) const {
  std::vector<TaskId> found;
  for (const std::vector<TaskId>& tasks : ranks_[rank].communication)
    if (const Place at = first_after(tasks, date); at != tasks.end() && timeline_.start[*at] <= date + shortest_)
      found.push_back(*at);
  return found;
}

Seconds KernelsBeside::next_change(RankIndex rank, Seconds date) const {
  Seconds next = never;
  for (const std::vector<TaskId>& tasks : ranks_[rank].communication) {
    const Place at = first_after(tasks, date);
    if (at == tasks.end()) continue;
    const Seconds start = timeline_.start[*at];
    next = std::min(next, start > date + shortest_ ? start : timeline_.end[*at]);
  }
  return next;
}

double KernelsBeside::slowdown(TaskId kernel, const std::vector<TaskId>& beside) const {
  sim::Occupation taken;
  for (const TaskId task : beside) {
    const sim::Occupation& one = costs_.of(dag_.tasks[task]).occupation;
    taken.multiprocessors += one.multiprocessors;
    taken.memory += one.memory;
  }
  return sim::slowdown_beside(dag_, times_, kernel, taken);
}

Seconds KernelsBeside::left_alone(TaskId kernel, Seconds date) const {
  const RankIndex rank = dag_.tasks[kernel].rank;
  const Seconds end = timeline_.end[kernel];
  Seconds left = 0;
  while (date + shortest_ < end) {
    const Seconds next = std::min(end, next_change(rank, date));
    left += (next - date) / slowdown(kernel, communication(rank, date));
    date = next;
  }
  return left;
}

}  // namespace tandem::studies
