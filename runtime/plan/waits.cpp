#include "runtime/plan/waits.h"

#include <algorithm>
#include <array>

#include "runtime/analysis/predecessors.h"

namespace tandem {
namespace {

/// By stream of the task's rank: up to which place of the order all its tasks are known to have ended; 0: none, else place + 1.
using Known = std::array<std::uint32_t, stream_count>;

void include(Known& known, const Known& other) {
  for (std::size_t s = 0; s < stream_count; ++s) known[s] = std::max(known[s], other[s]);
}

}  // namespace

WaitPlan::WaitPlan(const Dag& dag, const std::vector<TaskId>& order, std::span<const ArenaPlan::Wait> reuse)
    : begin_(dag.tasks.size(), 0), end_(dag.tasks.size(), 0), awaited_(dag.tasks.size(), false) {
  const Predecessors predecessors(dag);
  std::vector<std::uint32_t> place(dag.tasks.size(), 0);
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    for (const TaskId id : dag.unit_of(order[at])) place[id] = at;
  }
  std::vector<std::vector<TaskId>> reused(dag.tasks.size());
  for (const ArenaPlan::Wait& wait : reuse) reused[wait.waits].push_back(wait.on);

  std::vector<Known> after(dag.tasks.size());                           // what is known once the task has ended
  std::vector<Known> at_end(dag.ranks.size() * stream_count, Known{});  // of the last task issued on each stream
  for (const TaskId first : order) {
    for (const TaskId id : dag.unit_of(first)) {
      const Task& task = dag.tasks[id];
      const auto stream = static_cast<std::size_t>(task.stream);
      Known known = at_end[task.rank * stream_count + stream];
      std::vector<TaskId> candidates(predecessors.of(id).begin(), predecessors.of(id).end());
      candidates.insert(candidates.end(), reused[id].begin(), reused[id].end());
      // The latest first: it may know of the others.
      std::ranges::sort(candidates, std::greater<>(), [&](TaskId other) { return place[other]; });
      begin_[id] = static_cast<std::uint32_t>(tasks_.size());
      for (const TaskId other : candidates) {
        const auto on = static_cast<std::size_t>(dag.tasks[other].stream);
        if (on == stream || known[on] > place[other]) continue;
        tasks_.push_back(other);
        awaited_[other] = true;
        include(known, after[other]);
      }
      end_[id] = static_cast<std::uint32_t>(tasks_.size());
      known[stream] = place[id] + 1;
      after[id] = at_end[task.rank * stream_count + stream] = known;
    }
  }
}

}  // namespace tandem
