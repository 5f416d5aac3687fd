#include "runtime/dag/dag_builder.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "runtime/base/large_pages.h"

namespace tandem {

RankIndex DagBuilder::add_rank(const Rank& rank) {
  dag_.ranks.push_back(rank);
  last_on_stream_.emplace_back().fill(no_id);
  return static_cast<RankIndex>(dag_.ranks.size() - 1);
}

CommunicatorId DagBuilder::add_communicator(Communicator communicator) {
  dag_.communicators.push_back(std::move(communicator));
  groups_.emplace_back();
  return static_cast<CommunicatorId>(dag_.communicators.size() - 1);
}

BufferId DagBuilder::buffer(RankIndex rank, BufferKind kind, DType dtype, const Shape& shape, Scaling scaling) {
  const auto id = static_cast<BufferId>(dag_.buffers.size());
  dag_.buffers.push_back(
      {.shape = shape, .dtype = dtype, .scaling = scaling, .kind = kind, .rank = rank, .base = id, .offset = 0});
  first_access_.push_back(no_id);
  return id;
}

BufferId DagBuilder::view(BufferId of, std::int64_t offset, const Shape& shape) {
  Buffer view = dag_.buffers[of];
  if (offset < 0 || offset + shape.elements() > view.shape.elements()) throw std::logic_error("a view leaves its buffer");
  view.shape = shape;
  view.offset += offset;
  dag_.buffers.push_back(view);
  first_access_.push_back(no_id);
  return static_cast<BufferId>(dag_.buffers.size() - 1);
}

std::uint16_t DagBuilder::name_id(std::string_view name) {
  if (const auto known = name_ids_.find(name); known != name_ids_.end()) return known->second;
  const auto id = static_cast<std::uint16_t>(dag_.names.size());
  name_ids_.emplace(name, id);
  dag_.names.emplace_back(name);
  return id;
}

std::uint32_t DagBuilder::attribute_id(OpKind op, const OpAttributes& attributes) {
  std::uint32_t& last = last_attributes_[static_cast<std::size_t>(op)];
  if (last != no_id && dag_.attributes[last] == attributes) return last;
  const auto [entry, added] = attribute_ids_.try_emplace(attributes, static_cast<std::uint32_t>(dag_.attributes.size()));
  if (added) dag_.attributes.push_back(attributes);
  return last = entry->second;
}

void DagBuilder::order_by_access(TaskId task, const Operand& operand) {
  const Buffer& buffer = dag_.buffers[operand.buffer];
  const std::int64_t begin = buffer.offset;
  const std::int64_t end = begin + buffer.shape.elements();
  const bool writes = operand.access() != Access::read;
  const Stream stream = dag_.tasks[task].stream;
  std::uint32_t* link = &first_access_[buffer.base];
  while (*link != no_id) {
    AccessRecord& record = accesses_[*link];
    const bool overlap = record.begin < end && begin < record.end;
    if (overlap && (writes || record.write) && record.task != task) before_.push_back(record.task);
    // On one stream a later reader ends after an earlier one: only the last need be waited for.
    const bool is_followed = writes || (!record.write && dag_.tasks[record.task].stream == stream);
    if (is_followed && begin <= record.begin && record.end <= end) {
      const std::uint32_t next = std::exchange(record.next, free_access_);
      free_access_ = std::exchange(*link, next);
    } else {
      link = &record.next;
    }
  }
  const AccessRecord record{begin, end, task, first_access_[buffer.base], writes};
  if (free_access_ == no_id) {
    first_access_[buffer.base] = static_cast<std::uint32_t>(accesses_.size());
    accesses_.push_back(record);
  } else {
    first_access_[buffer.base] = free_access_;
    free_access_ = std::exchange(accesses_[free_access_], record).next;
  }
}

TaskId DagBuilder::add_task(const Task& task, std::span<const Operand> operands) {
  const auto id = static_cast<TaskId>(dag_.tasks.size());
  dag_.tasks.push_back(task);
  dag_.tasks.back().first_operand = static_cast<std::uint32_t>(dag_.operands.size());
  before_.clear();
  for (const Operand& operand : operands) {
    if (dag_.buffers[operand.buffer].rank != task.rank) throw std::logic_error("a task names another rank's buffer");
    dag_.operands.push_back(operand);
    order_by_access(id, operand);
  }
  TaskId& last = last_on_stream_[task.rank][static_cast<std::size_t>(task.stream)];
  // Stream order already holds for what ran earlier on the same stream.
  std::erase_if(before_, [&](TaskId b) { return dag_.tasks[b].stream == task.stream; });
  if (last != no_id) before_.push_back(last);
  last = id;
  std::sort(before_.begin(), before_.end());
  before_.erase(std::unique(before_.begin(), before_.end()), before_.end());
  for (const TaskId before : before_) edges_.emplace_back(before, id);
  kernels_.add(dag_);
  return id;
}

TaskId DagBuilder::kernel(OpKind op, const OpAttributes& attributes, const TaskLabels& labels, std::span<const BufferId> reads,
                          std::span<const BufferId> writes, std::span<const BufferId> updates) {
  std::array<Operand, most_operands> operands;
  std::size_t count = 0;
  const auto append = [&](std::span<const BufferId> ids, Access access) {
    for (const BufferId id : ids) operands.at(count++) = {id, static_cast<std::uint32_t>(access)};
  };
  append(reads, Access::read);
  append(writes, Access::write);
  append(updates, Access::update);
  if (count == 0) throw std::logic_error("a kernel without operands");
  Task task{.op = op,
            .phase = labels.phase,
            .stream = labels.stream,
            .rank = dag_.buffers[operands[0].buffer].rank,
            .attributes = attribute_id(op, attributes),
            .micro_batch = labels.micro_batch,
            .layer = labels.layer,
            .chunk = labels.chunk,
            .name = name_id(labels.name)};
  return add_task(task, {operands.data(), count});
}

TaskId DagBuilder::collective(OpKind op, CommunicatorId communicator, const TaskLabels& labels, BufferId in, BufferId out,
                              Reduction reduction, std::optional<Bytes> sent) {
  std::array<Operand, 2> operands;
  std::size_t count = 0;
  if (op == OpKind::all_reduce) {
    operands[count++] = {in, static_cast<std::uint32_t>(Access::update)};
  } else {
    if (in != no_id) operands[count++] = {in, static_cast<std::uint32_t>(Access::read)};
    if (out != no_id) operands[count++] = {out, static_cast<std::uint32_t>(Access::write)};
  }
  const RankIndex rank = dag_.buffers[operands[0].buffer].rank;
  const Bytes bytes = dag_.buffers[op == OpKind::all_gather || op == OpKind::receive ? out : in].bytes();
  return join(op, communicator, labels, rank, sent.value_or(bytes), {operands.data(), count}, {.reduction = reduction});
}

TaskId DagBuilder::rooted_collective(OpKind op, CommunicatorId communicator, const TaskLabels& labels, std::uint32_t root,
                                     BufferId whole, BufferId part, Reduction reduction) {
  const std::vector<std::uint32_t>& members = dag_.communicators[communicator].members;
  const RankIndex rank = dag_.buffers[part == no_id ? whole : part].rank;
  const bool is_root = members.at(root) == dag_.ranks[rank].world_rank;
  const bool partial = op == OpKind::gather || op == OpKind::scatter;
  if (partial && (whole != no_id) != is_root) throw std::logic_error("the root of a gather or scatter alone holds the whole");

  std::array<Operand, 2> operands;
  std::size_t count = 0;
  const auto add = [&](BufferId buffer, Access access) { operands[count++] = {buffer, static_cast<std::uint32_t>(access)}; };
  Bytes bytes = dag_.buffers[partial ? part : whole].bytes();
  if (partial) bytes *= static_cast<Bytes>(members.size());
  if (op == OpKind::broadcast) add(whole, is_root ? Access::read : Access::write);
  if (op == OpKind::reduce) add(whole, is_root ? Access::update : Access::read);
  if (op == OpKind::gather) add(part, Access::read);
  if (partial && is_root) add(whole, op == OpKind::gather ? Access::write : Access::read);
  if (op == OpKind::scatter) add(part, Access::write);
  return join(op, communicator, labels, rank, bytes, {operands.data(), count},
              {.reduction = reduction, .root = static_cast<std::int32_t>(root)});
}

TaskId DagBuilder::barrier(RankIndex rank, CommunicatorId communicator, const TaskLabels& labels) {
  return join(OpKind::barrier, communicator, labels, rank, 0, {}, {});
}

TaskId DagBuilder::join(OpKind op, CommunicatorId communicator, const TaskLabels& labels, RankIndex rank, Bytes bytes,
                        std::span<const Operand> operands, const ReductionAttributes& attributes) {
  const std::uint64_t caller =
      (std::uint64_t{communicator} << 32) | (std::uint64_t{rank} << 1) | (op == OpKind::receive ? 1U : 0U);
  const std::uint32_t call = calls_[caller]++;
  std::vector<GroupId>& groups = groups_[communicator];
  if (call >= groups.size()) {
    groups.push_back(static_cast<GroupId>(dag_.groups.size()));
    dag_.groups.push_back({communicator, bytes});
  }
  const GroupId group = groups[call];
  if (dag_.groups[group].bytes != bytes) {
    throw std::logic_error("members of '" + dag_.communicators[communicator].name + "' disagree on the size of a collective");
  }

  Task task{.op = op,
            .phase = labels.phase,
            .axis = dag_.communicators[communicator].axis,
            .stream = labels.stream,
            .rank = rank,
            .attributes = attribute_id(op, attributes),
            .group = group,
            .micro_batch = labels.micro_batch,
            .layer = labels.layer,
            .chunk = labels.chunk,
            .name = name_id(labels.name)};
  const TaskId id = add_task(task, operands);
  group_members_.emplace_back(group, id);
  return id;
}

void DagBuilder::depend(TaskId before, TaskId after) {
  if (before != no_id) edges_.emplace_back(before, after);
}

TaskId DagBuilder::last_on(RankIndex rank, Stream stream) const {
  return last_on_stream_[rank][static_cast<std::size_t>(stream)];
}

void DagBuilder::reserve_for(std::size_t ranks) {
  // What is not used after all is never touched, and so takes no memory.
  const auto reserve = [ranks](auto& items) {
    items.reserve((items.size() + items.size() / 8) * ranks);
    prefer_large_pages(items);
  };
  std::apply([&](auto&... items) { (reserve(items), ...); },
             std::tie(dag_.tasks, dag_.operands, dag_.buffers, first_access_, accesses_, edges_, group_members_));
}

void DagBuilder::group_tasks_by_collective() {
  dag_.group_begin.assign(dag_.groups.size() + 1, 0);
  for (const auto& [group, task] : group_members_) ++dag_.group_begin[group + 1];
  std::vector<std::uint32_t> members_of_communicator(dag_.communicators.size(), 0);
  for (GroupId g = 0; g < dag_.groups.size(); ++g) {
    std::uint32_t& expected = members_of_communicator[dag_.groups[g].communicator];
    const std::uint32_t present = dag_.group_begin[g + 1];
    if (expected == 0) expected = present;
    if (expected != present) {
      throw std::logic_error("a collective on '" + dag_.communicators[dag_.groups[g].communicator].name + "' has " +
                             std::to_string(present) + " members, another has " + std::to_string(expected));
    }
  }
  for (GroupId g = 0; g < dag_.groups.size(); ++g) dag_.group_begin[g + 1] += dag_.group_begin[g];
  dag_.group_tasks.resize(group_members_.size());
  std::vector<std::uint32_t> next(dag_.group_begin.begin(), dag_.group_begin.end() - 1);
  for (const auto& [group, task] : group_members_) dag_.group_tasks[next[group]++] = task;
}

Dag DagBuilder::finish() {
  group_tasks_by_collective();
  accesses_ = {};
  first_access_ = {};
  dag_.graph = TaskGraph(dag_.tasks.size(), edges_);
  edges_ = {};
  dag_.kernels = kernels_.take();
  return std::move(dag_);
}

}  // namespace tandem
