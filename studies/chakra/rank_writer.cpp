#include "studies/chakra/rank_writer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "runtime/base/si.h"
#include "sim/host_issue.h"
#include "studies/chakra/chakra_run.h"

namespace tandem::studies {
namespace {

/// Of times that follow one another, so that rounded durations add up.
std::uint64_t whole_microseconds(Seconds start, Seconds end) {
  return static_cast<std::uint64_t>(std::llround(end / micro) - std::llround(start / micro));
}

bool is_transfer(OpKind op) { return op == OpKind::send || op == OpKind::receive; }

/// Nothing moves where another exchange carries its data.
bool is_carried(const Dag& dag, const Task& task) {
  return task.group != no_id && task.op != OpKind::barrier && dag.groups[task.group].bytes == 0;
}

void set_times(chakra::Node& node, Seconds start, Seconds end) {
  node.set_start_time_micros(static_cast<std::uint64_t>(std::llround(start / micro)));
  node.set_duration_micros(whole_microseconds(start, end));
  add_attribute(node, exact_duration, (end - start) * giga);
}

}  // namespace

ChakraNumbers::ChakraNumbers(const Dag& dag) : group_names(dag.communicators.size(), 0), tags(dag.groups.size(), 0) {
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  const auto pair_of = [&](CommunicatorId id) {
    return Pair{dag.communicators[id].members.front(), dag.communicators[id].members.back()};
  };
  std::map<Pair, std::int64_t> pairs;
  std::vector<std::int64_t> place(dag.communicators.size(), 0), calls(dag.communicators.size(), 0);
  for (CommunicatorId id = 0; id < dag.communicators.size(); ++id)
    if (dag.communicators[id].members.size() == 2) place[id] = pairs[pair_of(id)]++;
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    const CommunicatorId communicator = dag.groups[group].communicator;
    const Task& first = dag.tasks[dag.members_of(group).front()];
    if (first.op == OpKind::copy || is_carried(dag, first)) continue;
    if (is_transfer(first.op)) {
      tags[group] = calls[communicator]++ * pairs[pair_of(communicator)] + place[communicator];
    } else {
      group_names[communicator] = std::int64_t{communicator} + 1;
    }
  }
}

RankWriter::RankWriter(const Dag& dag, const std::vector<Seconds>& start, const std::vector<Seconds>& end)
    : dag_(dag),
      start_(start),
      end_(end),
      numbers_(dag),
      predecessors_(dag),
      tasks_of_rank_(dag.ranks.size()),
      node_of_(dag.tasks.size(), 0),
      issues_for_free_(issues_for_free(dag)) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id) tasks_of_rank_[dag.tasks[id].rank].push_back(id);
}

std::size_t RankWriter::write(RankIndex rank, ChakraWriter& out) {
  Issuing cpu;
  if (const Seconds overhead = before_first_kernel(dag_); overhead > 0) issue(no_id, overhead, cpu, out);
  for (const TaskId id : tasks_of_rank_[rank]) {
    const Seconds all = issues_for_free_ ? 0 : issue_time(dag_, id), first = issues_for_free_ ? 0 : first_issue_time(dag_, id);
    if (first > 0 || !cpu.waits_for.empty()) issue(id, first, cpu, out);
    chakra::Node node = node_of(id);
    node_of_[id] = cpu.next_node++;
    node.set_id(node_of_[id]);
    for (const TaskId before : predecessors_.of(id)) {
      if (dag_.tasks[before].rank != rank || before > id) throw std::logic_error("a task waits for one that its rank has later");
      node.add_data_deps(node_of_[before]);
    }
    if (cpu.has_last) node.add_data_deps(cpu.last);
    out.write(node);
    if (all > first) issue(id, all - first, cpu, out);
    if (std::ranges::find(dag_.software.waits_for, dag_.tasks[id].op) != dag_.software.waits_for.end())
      cpu.waits_for.push_back(id);
  }
  return cpu.next_node;
}

/// A node of the CPU that issues `task`, or of what passes before the first.
std::uint64_t RankWriter::issue(TaskId task, Seconds time, Issuing& cpu, ChakraWriter& out) {
  chakra::Node node;
  node.set_id(cpu.next_node++);
  node.set_name(task == no_id ? "before the first kernel" : "issue " + std::string(dag_.name_of_task(task)));
  node.set_type(static_cast<std::uint32_t>(ChakraNodeType::compute));
  if (cpu.has_last) node.add_data_deps(cpu.last);
  for (const TaskId before : std::exchange(cpu.waits_for, {})) {
    node.add_data_deps(node_of_[before]);
    cpu.free = std::max(cpu.free, end_[before]);
  }
  set_times(node, cpu.free, cpu.free + time);
  add_attribute(node, "is_cpu_op", true);
  out.write(node);
  cpu.free += time;
  cpu.has_last = true;
  return cpu.last = node.id();
}

chakra::Node RankWriter::node_of(TaskId id) const {
  const Task& task = dag_.tasks[id];
  chakra::Node node;
  node.set_name(std::string(dag_.name_of_task(id)));
  set_times(node, start_[id], end_[id]);
  add_attribute(node, "is_cpu_op", task.stream == Stream::host);
  if (!is_communication(task.op) || task.op == OpKind::copy || is_carried(dag_, task)) {
    describe_kernel(id, node);
  } else {
    describe_exchange(id, node);
  }
  add_attribute(node, node_phase, name_of(task.phase));
  add_attribute(node, node_stream, static_cast<std::int64_t>(task.stream) + 1);
  if (task.layer >= 0) add_attribute(node, "layer", std::int64_t{task.layer});
  if (task.micro_batch >= 0) add_attribute(node, "micro_batch", std::int64_t{task.micro_batch});
  return node;
}

void RankWriter::describe_kernel(TaskId id, chakra::Node& node) const {
  const Task& task = dag_.tasks[id];
  const bool copies = task.op == OpKind::copy;
  const auto type = !copies                          ? ChakraNodeType::compute
                    : task.stream == Stream::to_host ? ChakraNodeType::memory_store
                                                     : ChakraNodeType::memory_load;
  node.set_type(static_cast<std::uint32_t>(type));
  const OpCost cost = cost_of(dag_, id);
  add_attribute(node, "num_ops", static_cast<std::int64_t>(std::llround(cost.flops)));
  add_attribute(node, "tensor_size", copies ? dag_.groups[task.group].bytes : cost.bytes);
}

void RankWriter::describe_exchange(TaskId id, chakra::Node& node) const {
  const Task& task = dag_.tasks[id];
  const Group& group = dag_.groups[task.group];
  const Communicator& communicator = dag_.communicators[group.communicator];
  if (is_transfer(task.op)) {
    node.set_type(static_cast<std::uint32_t>(task.op == OpKind::send ? ChakraNodeType::send : ChakraNodeType::receive));
    add_attribute(node, "comm_size", std::int64_t{group.bytes});
    add_attribute(node, "comm_src", std::int64_t{communicator.members.front()});
    add_attribute(node, "comm_dst", std::int64_t{communicator.members.back()});
    add_attribute(node, "comm_tag", numbers_.tags[task.group]);
  } else {
    node.set_type(static_cast<std::uint32_t>(ChakraNodeType::collective));
    const bool is_part = task.op == OpKind::all_gather || task.op == OpKind::gather;
    const auto members = static_cast<Bytes>(communicator.members.size());
    add_attribute(node, "comm_type", chakra_collective_of(task.op).value());
    add_attribute(node, "comm_size", std::int64_t{is_part ? group.bytes / members : group.bytes});
    add_attribute(node, "pg_name", std::string_view(std::to_string(numbers_.group_names[group.communicator])));
  }
  add_attribute(node, group_axis, name_of(communicator.axis));
  add_attribute(node, group_description, std::string_view(communicator.name));
}

}  // namespace tandem::studies
