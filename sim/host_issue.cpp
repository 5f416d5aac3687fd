#include "sim/host_issue.h"

#include <algorithm>
#include <utility>

#include "runtime/base/parallel.h"
#include "sim/collective_cost.h"
#include "sim/kernel_cost.h"

namespace tandem::sim {

namespace {

IssueTime usual_parts(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  const Software& software = dag.software;
  const IssueCost& cost = software.issue;
  const bool is_carried = task.op == OpKind::all_to_all && dag.groups[task.group].bytes == 0;  // see collective_cost.h
  const bool of_chunk =
      task.op == OpKind::receive ? task.stream == Stream::tp_receive : task.op == OpKind::send && task.stream == Stream::tp;
  if (is_communication(task.op)) {
    const Seconds own = is_carried ? 0 : of_chunk && cost.loop > 0 ? cost.loop : cost.communication;
    const Seconds copies = static_cast<double>(tensors_in_list(dag, task)) * (cost.loop > 0 ? cost.loop : cost.communication);
    // What is gathered is copied after, what is reduced before.
    return task.op == OpKind::all_gather ? IssueTime{own, copies} : IssueTime{own + copies};
  }
  const OpAttributes& attributes = dag.attributes[task.attributes];
  if (is_fused(attributes)) return {};
  const Pass pass = pass_of(task.phase);
  const bool backward = pass == Pass::backward || pass == Pass::weights;
  const Seconds usual = backward ? cost.backward : cost.forward;
  const double each = 1 + software.beside(task.op, pass).kernels;
  const std::int64_t kernels = kernels_of(software, task.op, attributes);
  if (kernels == 1) return {std::ranges::find(software.captured, task.op) != software.captured.end() ? 0 : usual * each};
  if (operation(task.op).kernels > 1) return {usual * each, static_cast<double>(kernels - 1) * usual * each};
  const Seconds of_expert = (cost.loop > 0 ? cost.loop : usual) * each;
  return {usual + of_expert, static_cast<double>(kernels - 1) * of_expert};
}

/// At a site where kernels and communication take longer, so does issuing them.
IssueTime issue_parts(const Dag& dag, TaskId id) {
  const Site& site = dag.device_of(dag.tasks[id]).site;
  const double times = is_communication(dag.tasks[id].op) ? site.communication : site.kernels;
  const auto [first, rest] = usual_parts(dag, id);
  return {first * times, rest * times};
}

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

Seconds issue_time(const Dag& dag, TaskId id) { return issue_parts(dag, id).all(); }

Seconds first_issue_time(const Dag& dag, TaskId id) { return issue_parts(dag, id).first; }

IssueTimes::IssueTimes(const Dag& dag) : dag_(dag), is_free_(dag.software.issue == IssueCost{}) {
  for (const TaskId first : dag.first_of_kernel) of_kernel_.push_back(issue_parts(dag, first));
}

IssueTime IssueTimes::of(TaskId id) const {
  if (is_free_) return {};
  const KernelId kernel = dag_.tasks[id].kernel;
  return kernel == no_id ? issue_parts(dag_, id) : of_kernel_[kernel];
}

std::vector<Seconds> issue_times(const Dag& dag, const Timeline& timeline) {
  const IssueTimes times(dag);
  std::vector<Seconds> of_rank, longest_rest(dag.ranks.size(), 0);
  for (const Rank& rank : dag.ranks) of_rank.push_back(before_steps(dag, rank));
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const std::uint32_t rank = dag.tasks[id].rank;
    const IssueTime time = times.of(id);
    of_rank[rank] += timeline.times(id) * time.all();
    longest_rest[rank] = std::max(longest_rest[rank], time.rest);
  }
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) of_rank[rank] -= longest_rest[rank];
  return of_rank;
}

HostIssue::HostIssue(std::shared_ptr<const HostOrder> order)
    : order_(std::move(order)),
      dag_(order_->dag()),
      times_(dag_),
      of_rank_(dag_.ranks.size()),
      issued_(dag_.tasks.size(), not_dated) {
  in_parallel(of_rank_.size(), [&](std::size_t rank) {
    of_rank_[rank] = {.turns = order_->turns(static_cast<RankIndex>(rank)), .free = before_steps(dag_, dag_.ranks[rank])};
    advance(of_rank_[rank]);
  });
}

void HostIssue::advance(Thread& thread) {
  while (thread.waits_for == no_id) {
    const HostOrder::Turn turn = thread.turns.next();
    if (turn.task == no_id) return;
    if (turn.issues) {
      const IssueTime time = times_.of(turn.task);
      issued_[turn.task] = thread.free + time.first;
      thread.free += time.all();
    }
    if (!turn.waits) continue;
    const auto arrival = turn.issues ? arrived_.end() : arrived_.find(turn.task);
    if (arrival != arrived_.end())
      thread.free = std::max(thread.free, arrival->second);
    else
      thread.waits_for = turn.task;
  }
}

const std::vector<TaskId>& HostIssue::ended(TaskId first, Seconds date) {
  newly_dated_.clear();
  for (const TaskId id : dag_.unit_of(first)) {
    Thread& thread = of_rank_[dag_.tasks[id].rank];
    if (is_from_another_stage(dag_.tasks[id]) && order_->waits_for(id)) arrived_.emplace(id, date);
    if (thread.waits_for != id) continue;
    thread.waits_for = no_id;
    thread.free = std::max(thread.free, date);
    advance(thread);
    if (!thread.awaited.empty()) tell_of(thread);
  }
  return newly_dated_;
}

std::size_t HostIssue::dated_among(TaskId first, TaskId last) const {
  std::size_t dated = last - first + 1;
  if (is_dated(last)) return dated;
  while (dated > 0 && !is_dated(first + static_cast<TaskId>(dated) - 1)) --dated;
  return dated;
}

void HostIssue::await(TaskId id) { of_rank_[dag_.tasks[id].rank].awaited.push_back(id); }

void HostIssue::tell_of(Thread& thread) {
  const auto waits_on = std::ranges::partition(thread.awaited, [&](TaskId id) { return !is_dated(id); });
  std::ranges::sort(waits_on, [&](TaskId one, TaskId other) { return order_->is_issued_before(one, other); });
  newly_dated_.insert(newly_dated_.end(), waits_on.begin(), waits_on.end());
  thread.awaited.erase(waits_on.begin(), waits_on.end());
}

}  // namespace tandem::sim
