// What a builder does with the parts that others build for it; see dag_builder.h.

#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dag/dag_builder.h"

namespace tandem {
namespace {

/// Returns what was appended, where it is now.
template <typename T>
std::span<T> appended(std::vector<T>& to, const std::vector<T>& items) {
  to.insert(to.end(), items.begin(), items.end());
  return std::span(to).last(items.size());
}

}  // namespace

DagBuilder DagBuilder::part_of(const DagBuilder& whole) {
  DagBuilder part;
  part.whole_ = &whole;
  part.last_on_stream_.resize(whole.last_on_stream_.size());
  for (auto& last : part.last_on_stream_) last.fill(no_id);
  part.calls_.resize(whole.calls_.size());
  return part;
}

void DagBuilder::reserve_for(std::size_t more, const DagBuilder& like) {
  const auto is_enough = [&](const auto& items, const auto& of_one) {
    return items.size() + of_one.size() * more <= items.capacity();
  };
  // What is not used after all is never touched, and so takes no memory.
  const auto room = [&](std::size_t now, std::size_t of_one) { return now + (of_one + of_one / 8) * more; };
  if (!is_enough(dag_.tasks, like.dag_.tasks)) {
    dag_.graph.reserve(room(dag_.graph.tasks(), like.dag_.graph.tasks()),
                       room(dag_.graph.targets().size(), like.dag_.graph.targets().size()));
  }
  const auto reserve = [&](auto& items, const auto& of_one) {
    if (!is_enough(items, of_one)) items.reserve(room(items.size(), of_one.size()));
  };
  reserve(dag_.tasks, like.dag_.tasks);
  reserve(dag_.operands, like.dag_.operands);
  if (!is_enough(dag_.buffers, like.dag_.buffers)) dag_.buffers.reserve(room(dag_.buffers.size(), like.dag_.buffers.size()));
}

std::vector<GroupId> DagBuilder::groups_of(DagBuilder& part, const LikeRank* like) {
  std::vector<GroupId> groups;
  groups.reserve(part.dag_.groups.size());
  // The part's groups of one communicator were made call by call.
  for (const Group& group : part.dag_.groups) part.calls_[group.communicator].of_last_rank = {};
  for (const Group& group : part.dag_.groups) {
    const CommunicatorId communicator = like != nullptr ? like->communicator.at(group.communicator) : group.communicator;
    groups.push_back(group_of(communicator, part.calls_[group.communicator].of_last_rank[0]++, group.bytes));
  }
  return groups;
}

void DagBuilder::append(DagBuilder& part) {
  append_and_keep(part);
  part.clear();
}

void DagBuilder::append_ended(DagBuilder& part, const LikeRank* like) {
  if (part.whole_ != this) throw std::logic_error("a part is appended to another DAG than it is of");
  end_rank();
  append_tasks(part, like);
  dag_.graph.append(part.dag_.graph);
  ended_tasks_ = dag_.tasks.size();
  ended_buffers_ = dag_.buffers.size();
}

void DagBuilder::append_shards(const Dag& of, BufferId first_buffer) {
  for (ParameterShard shard : of.shards) {
    shard.buffer += first_buffer;
    dag_.shards.push_back(std::move(shard));
  }
}

void DagBuilder::append_tasks(DagBuilder& part, const LikeRank* like) {
  const std::vector<GroupId> groups = groups_of(part, like);
  const auto first_buffer = static_cast<BufferId>(dag_.buffers.size());
  const auto first_operand = static_cast<std::uint32_t>(dag_.operands.size());
  append_shards(like != nullptr ? like->declared->dag_ : part.dag_, first_buffer);
  if (like == nullptr) {
    dag_.buffers.append(part.dag_.buffers);
    for (InputShard input : part.dag_.inputs) {
      input.buffer += first_buffer;
      dag_.inputs.push_back(input);
    }
  } else {
    dag_.buffers.append_as(part.dag_.buffers, like->rank, like->declared->dag_.buffers);
  }
  dag_.tasks.append(part.dag_.tasks, kinds_of(part, first_buffer, like), groups, first_operand);
  for (Operand& operand : appended(dag_.operands, part.dag_.operands)) operand.buffer += first_buffer;
}

std::vector<Task> DagBuilder::kinds_of(const DagBuilder& part, BufferId first_buffer, const LikeRank* like) {
  std::vector<std::uint16_t> names;
  for (const std::string& name : part.dag_.names) names.push_back(name_id(name));
  std::vector<std::uint32_t> attributes(part.dag_.attributes.size(), no_id);
  const auto here = [&](Task task) {
    std::uint32_t& attribute = attributes[task.attributes];
    if (attribute == no_id) attribute = attribute_id(task.op, task.phase, part.dag_.attributes[task.attributes]);
    task.attributes = attribute;
    if (like != nullptr) task.rank = like->rank;
    task.name = names[task.name];
    return task;
  };
  std::vector<Task> kinds;
  kinds.reserve(part.dag_.tasks.kinds().size());
  for (const Task& kind : part.dag_.tasks.kinds()) kinds.push_back(here(kind));

  std::vector<KernelId> kernels;
  kernels.reserve(part.kernels_.first().size());
  const auto first_task = static_cast<TaskId>(dag_.tasks.size());
  std::vector<Operand> operands;
  for (const TaskId first : part.kernels_.first()) {
    const Task task = here(part.dag_.tasks[first]);
    operands.clear();
    for (const Operand& operand : part.dag_.operands_of(first))
      operands.push_back({operand.buffer + first_buffer, operand.access_bits});
    kernels.push_back(kernels_.number_of(dag_, task, first_task + first, operands, dag_.ranks[task.rank].device));
  }
  for (Task& kind : kinds)
    if (kind.kernel != no_id) kind.kernel = kernels[kind.kernel];
  return kinds;
}

/// Keeps its room.
void DagBuilder::clear() {
  RankIndex cleared = no_id;
  for (const Task& task : dag_.tasks)
    if (task.rank != cleared) last_on_stream_[cleared = task.rank].fill(no_id);
  for (const Group& group : dag_.groups) {
    Calls& calls = calls_[group.communicator];
    calls.groups.clear();
    calls.last_rank = no_id;
  }
  const auto clear_all = [](auto&... items) { (items.clear(), ...); };
  clear_all(dag_.names, dag_.attributes, dag_.buffers, dag_.shards, dag_.inputs, dag_.tasks, dag_.operands, dag_.groups);
  clear_all(dag_.graph, kernels_, accesses_, edges_, name_ids_, attribute_ids_, calls_of_others_);
  forget_last_attributes();
  ended_tasks_ = ended_buffers_ = 0;
}

}  // namespace tandem
