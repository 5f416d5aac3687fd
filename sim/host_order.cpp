#include "sim/host_order.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tandem::sim {

bool is_from_another_stage(const Task& task) {
  return task.op == OpKind::receive &&
         (task.stream == Stream::pp_receive_forward || task.stream == Stream::pp_receive_backward ||
          task.stream == Stream::pp_receive_forward_descending || task.stream == Stream::pp_receive_backward_descending);
}

namespace {

/// Receives from other stages, each behind the last kernel of its rank that ends before it is posted: that kernel and the
/// receive, in the order of both. Without such a kernel, a receive is posted from the start: behind `no_id`, which is the last
/// here.
std::vector<std::pair<TaskId, TaskId>> posted_behind(const Dag& dag) {
  std::unordered_map<TaskId, TaskId> behind;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (is_from_another_stage(dag.tasks[id])) behind.emplace(id, no_id);
  if (behind.empty()) return {};
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].stream != Stream::compute) continue;
    for (const TaskId next : dag.graph.successors(id))
      if (is_from_another_stage(dag.tasks[next])) behind.at(next) = id;
  }
  std::vector<std::pair<TaskId, TaskId>> posted;
  for (const auto& [receive, kernel] : behind) posted.emplace_back(kernel, receive);
  std::ranges::sort(posted);
  return posted;
}

}  // namespace

HostOrder::HostOrder(const Dag& dag)
    : dag_(dag), waited_for_(op_kind_count, false), of_rank_(dag.ranks.size()), turn_(dag.tasks.size(), 0) {
  for (const OpKind kind : dag.software.waits_for) waited_for_[static_cast<std::size_t>(kind)] = true;
  put_in_order();
  if (dag.software.waits_for_dispatch) find_dispatches();
}

void HostOrder::put_in_order() {
  const auto issue = [&](TaskId id) {
    std::vector<TaskId>& turns = of_rank_[dag_.tasks[id].rank];
    turn_[id] = static_cast<std::uint32_t>(turns.size());
    turns.push_back(id);
  };
  const std::vector<std::pair<TaskId, TaskId>> posted = posted_behind(dag_);
  std::vector<std::size_t> tasks(of_rank_.size(), 0);
  for (const Task& task : dag_.tasks) ++tasks[task.rank];
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) of_rank_[rank].reserve(tasks[rank]);
  auto from_start = std::ranges::lower_bound(posted, std::pair(no_id, TaskId{0}));
  for (auto next = from_start; next != posted.end(); ++next) issue(next->second);
  auto next = posted.begin();
  for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
    if (!is_from_another_stage(dag_.tasks[id])) {
      issue(id);
    } else if (waits_for(id)) {
      of_rank_[dag_.tasks[id].rank].push_back(id);
    }
    for (; next != from_start && next->first == id; ++next) issue(next->second);
  }
}

/// Of a pass's exchanges, the first after the router's is the dispatch.
void HostOrder::find_dispatches() {
  for (const std::vector<TaskId>& turns : of_rank_) {
    bool routed = false;
    for (const TaskId id : turns) {
      const Task& task = dag_.tasks[id];
      if (task.op == OpKind::route) routed = true;
      const bool exchanges = task.op == OpKind::all_to_all && task.stream == Stream::ep && dag_.groups[task.group].bytes > 0;
      if (exchanges && pass_of(task.phase) == Pass::forward && std::exchange(routed, false)) dispatches_.insert(id);
    }
  }
}

/// Of all-gathers, those of weights: a synchronization in a gather of ZeRO knows nothing of what sequence parallelism gathers.
bool HostOrder::waits_for(TaskId id) const {
  const Task& task = dag_.tasks[id];
  if (task.op == OpKind::all_gather && task.stream != Stream::dp) return false;
  return waited_for_[static_cast<std::size_t>(task.op)] || (task.op == OpKind::all_to_all && dispatches_.contains(id));
}

}  // namespace tandem::sim
