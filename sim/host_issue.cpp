#include "sim/host_issue.h"

#include <algorithm>

#include "runtime/plan/issue_order.h"

namespace tandem::sim {

Seconds issue_time(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  const IssueCost& cost = dag.software.issue;
  const bool is_carried = task.op == OpKind::all_to_all && dag.groups[task.group].bytes == 0;  // see collective_cost.h
  if (is_communication(task.op)) return is_carried ? 0 : cost.communication;
  if (is_fused(dag.attributes[task.attributes])) return 0;
  const Pass pass = pass_of(task.phase);
  const bool backward = pass == Pass::backward || pass == Pass::weights;
  return (backward ? cost.backward : cost.forward) * (1 + dag.software.beside(task.op, pass).kernels);
}

namespace {

/// Before the first of several steps passes what belongs to all.
Seconds before_steps(const Dag& dag, const Rank& rank) { return dag.devices[rank.device].site.overhead * dag.info.steps; }

}  // namespace

Seconds before_first_kernel(const Dag& dag) {
  Seconds longest = 0;
  for (const Rank& rank : dag.ranks) longest = std::max(longest, before_steps(dag, rank));
  return longest;
}

bool issues_for_free(const Dag& dag) {
  return dag.software.issues_for_free() &&
         std::ranges::none_of(dag.devices, [](const Device& device) { return device.site.overhead > 0; });
}

std::vector<Seconds> issue_times(const Dag& dag) {
  std::vector<Seconds> of_rank;
  for (const Rank& rank : dag.ranks) of_rank.push_back(before_steps(dag, rank));
  for (TaskId id = 0; id < dag.tasks.size(); ++id) of_rank[dag.tasks[id].rank] += issue_time(dag, id);
  return of_rank;
}

HostIssue::HostIssue(const Dag& dag)
    : dag_(dag),
      waited_for_(op_kind_count, false),
      of_rank_(dag.ranks.size()),
      place_(dag.tasks.size(), 0),
      issued_(dag.tasks.size(), 0) {
  for (const OpKind kind : dag.software.waits_for) waited_for_[static_cast<std::size_t>(kind)] = true;
  for (const TaskId first : issue_order(dag))
    for (const TaskId id : dag.unit_of(first)) {
      std::vector<TaskId>& order = of_rank_[dag.tasks[id].rank].order;
      place_[id] = static_cast<std::uint32_t>(order.size());
      order.push_back(id);
    }
  for (std::size_t rank = 0; rank < of_rank_.size(); ++rank) {
    of_rank_[rank].free = before_steps(dag, dag.ranks[rank]);
    advance(of_rank_[rank]);
  }
}

void HostIssue::advance(Thread& thread) {
  while (thread.waits_for == no_id && thread.dated < thread.order.size()) {
    const TaskId id = thread.order[thread.dated++];
    thread.free += issue_time(dag_, id);
    issued_[id] = thread.free;
    newly_dated_.push_back(id);
    if (waited_for_[static_cast<std::size_t>(dag_.tasks[id].op)]) thread.waits_for = id;
  }
}

const std::vector<TaskId>& HostIssue::ended(TaskId first, Seconds date) {
  newly_dated_.clear();
  for (const TaskId id : dag_.unit_of(first)) {
    Thread& thread = of_rank_[dag_.tasks[id].rank];
    if (thread.waits_for != id) continue;
    thread.waits_for = no_id;
    thread.free = std::max(thread.free, date);
    advance(thread);
  }
  return newly_dated_;
}

}  // namespace tandem::sim
