#include "sim/host_order.h"

#include <algorithm>
#include <utility>

namespace tandem::sim {

bool is_from_another_stage(const Task& task) {
  return task.op == OpKind::receive &&
         (task.stream == Stream::pp_receive_forward || task.stream == Stream::pp_receive_backward ||
          task.stream == Stream::pp_receive_forward_descending || task.stream == Stream::pp_receive_backward_descending);
}

HostOrder::HostOrder(const Dag& dag)
    : dag_(dag), tasks_(ByRank::tasks(dag)), waited_for_(op_kind_count, false), posted_(dag.ranks.size()) {
  for (const OpKind kind : dag.software.waits_for) waited_for_[static_cast<std::size_t>(kind)] = true;
  find_receives();
  if (dag.software.waits_for_dispatch) find_dispatches();
}

void HostOrder::find_receives() {
  std::vector<bool> is_receive(dag_.tasks.size(), false);
  for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
    if (!is_from_another_stage(dag_.tasks[id])) continue;
    is_receive[id] = true;
    receives_.push_back({before_all, id});
  }
  if (receives_.empty()) return;
  for (TaskId id = 0; id < dag_.tasks.size(); ++id)
    for (const TaskId next : dag_.graph.successors(id))
      if (is_receive[next] && dag_.tasks[id].stream == Stream::compute)
        std::ranges::lower_bound(receives_, next, {}, &Posted::receive)->behind = id;
  for (const Posted& receive : receives_) posted_[dag_.tasks[receive.receive].rank].push_back(receive);
  for (std::vector<Posted>& of_rank : posted_) std::ranges::sort(of_rank);
}

HostOrder::Turn HostOrder::Turns::next() {
  const std::vector<Posted>& posted = order_->posted_[rank_];
  for (;;) {
    if (posted_ < posted.size() && posted[posted_].behind == last_) return {posted[posted_++].receive, true};
    if (task_ == order_->tasks_.count(rank_)) return {};
    const TaskId id = order_->tasks_.id(rank_, task_++);
    last_ = id;
    const bool waits = order_->waits_for(id);
    if (!is_from_another_stage(order_->dag_.tasks[id])) return {id, true, waits};
    if (waits) return {id, false, true};
  }
}

HostOrder::Posted HostOrder::place_of(TaskId id) const {
  if (!is_from_another_stage(dag_.tasks[id])) return {id, 0};
  return *std::ranges::lower_bound(receives_, id, {}, &Posted::receive);
}

/// Of a pass's exchanges, the first after the router's is the dispatch.
void HostOrder::find_dispatches() {
  for (RankIndex rank = 0; rank < dag_.ranks.size(); ++rank) {
    bool routed = false;
    tasks_.for_each(rank, [&](TaskId id) {
      const Task& task = dag_.tasks[id];
      if (task.op == OpKind::route) routed = true;
      const bool exchanges = task.op == OpKind::all_to_all && task.stream == Stream::ep && dag_.groups[task.group].bytes > 0;
      if (exchanges && pass_of(task.phase) == Pass::forward && std::exchange(routed, false)) dispatches_.insert(id);
    });
  }
}

/// Of all-gathers, those of weights: a synchronization in a gather of ZeRO knows nothing of what sequence parallelism gathers.
bool HostOrder::waits_for(TaskId id) const {
  const Task& task = dag_.tasks[id];
  if (task.op == OpKind::all_gather && task.stream != Stream::dp) return false;
  return waited_for_[static_cast<std::size_t>(task.op)] || (task.op == OpKind::all_to_all && dispatches_.contains(id));
}

}  // namespace tandem::sim
