#include "runtime/dag/dag_builder.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/base/hash.h"

namespace tandem {

RankIndex DagBuilder::add_rank(const Rank& rank) {
  dag_.ranks.push_back(rank);
  last_on_stream_.emplace_back().fill(no_id);
  return static_cast<RankIndex>(dag_.ranks.size() - 1);
}

CommunicatorId DagBuilder::add_communicator(Communicator communicator) {
  dag_.communicators.push_back(std::move(communicator));
  calls_.emplace_back();
  return static_cast<CommunicatorId>(dag_.communicators.size() - 1);
}

BufferId DagBuilder::buffer(RankIndex rank, BufferKind kind, DType dtype, const Shape& shape, Scaling scaling) {
  const auto id = static_cast<BufferId>(dag_.buffers.size());
  dag_.buffers.push_back(
      {.shape = shape, .dtype = dtype, .scaling = scaling, .kind = kind, .rank = rank, .base = id, .offset = 0});
  accesses_.add_buffer();
  return id;
}

BufferId DagBuilder::view(BufferId of, std::int64_t offset, const Shape& shape) {
  Buffer view = dag_.buffers[of];
  if (offset < 0 || offset + shape.elements() > view.shape.elements()) throw std::logic_error("a view leaves its buffer");
  view.shape = shape;
  view.offset += offset;
  dag_.buffers.push_back(view);
  accesses_.add_buffer();
  return static_cast<BufferId>(dag_.buffers.size() - 1);
}

BufferId DagBuilder::buffer_like(BufferId earlier, BufferId base) {
  const auto id = static_cast<BufferId>(dag_.buffers.size());
  dag_.buffers.push_like(earlier, base);
  base == id ? accesses_.add_untracked_buffer() : accesses_.add_buffer();
  return id;
}

std::uint16_t DagBuilder::name_id(std::string_view name) {
  const auto place = hash(reinterpret_cast<std::uintptr_t>(name.data()) + name.size()) % recent_names_.size();
  const std::uint16_t recent = recent_names_[place];
  if (recent < dag_.names.size() && dag_.names[recent] == name) return recent;
  auto known = name_ids_.find(name);
  if (known == name_ids_.end()) {
    known = name_ids_.emplace(name, static_cast<std::uint16_t>(dag_.names.size())).first;
    dag_.names.emplace_back(name);
  }
  return recent_names_[place] = known->second;
}

std::uint32_t DagBuilder::attribute_id(OpKind op, Phase phase, const OpAttributes& attributes) {
  std::uint32_t& last = last_attributes_[static_cast<std::size_t>(op)][static_cast<std::size_t>(phase)];
  if (last != no_id && dag_.attributes[last] == attributes) return last;
  const auto [entry, added] = attribute_ids_.try_emplace(attributes, static_cast<std::uint32_t>(dag_.attributes.size()));
  if (added) dag_.attributes.push_back(attributes);
  return last = entry->second;
}

void DagBuilder::order_by_access(TaskId task, Stream stream, const Operand& operand) {
  const Buffer& buffer = dag_.buffers[operand.buffer];
  if (buffer.base < ended_buffers_) throw std::logic_error("a task names a buffer of a rank that is complete");
  const std::size_t number = buffer.base - ended_buffers_;
  if (!accesses_.is_tracked(number)) throw UntrackedBuffer("a task names a buffer of a copied pass");
  accesses_.note(number,
                 {.task = task,
                  .begin = buffer.offset,
                  .end = buffer.offset + buffer.shape.elements(),
                  .stream = stream,
                  .writes = operand.access() != Access::read},
                 before_);
}

TaskId DagBuilder::add_task(Task task, std::span<const Operand> operands) {
  const auto id = static_cast<TaskId>(dag_.tasks.size());
  task.first_operand = static_cast<std::uint32_t>(dag_.operands.size());
  task.kernel = kernels_.number_of(dag_, task, id, operands, ranks()[task.rank].device);
  dag_.tasks.push_back(task);
  add_order(task, operands);
  return id;
}

TaskId DagBuilder::task_like(TaskId earlier, std::int32_t micro_batch, std::span<const BufferId> buffers,
                             const KnownOrder& known) {
  Task task = dag_.tasks[earlier];
  std::array<Operand, most_operands> operands;
  const std::span<const Operand> before = dag_.operands_of(earlier);
  for (std::size_t i = 0; i < before.size(); ++i) operands[i] = {buffers[i], before[i].access_bits};
  if (task.group != no_id) {
    const Group group = dag_.groups[task.group];
    task.group = group_of(group.communicator, next_call(group.communicator, task.rank, task.op == OpKind::receive), group.bytes);
  }
  const auto id = static_cast<TaskId>(dag_.tasks.size());
  dag_.tasks.push_like(earlier, static_cast<std::uint32_t>(dag_.operands.size()), task.group, micro_batch);
  if (task.kernel != no_id) kernels_.ran(task.kernel);
  add_order(task, {operands.data(), before.size()}, known);
  return id;
}

void DagBuilder::add_order(const Task& task, std::span<const Operand> operands, const KnownOrder& known) {
  const auto id = static_cast<TaskId>(dag_.tasks.size() - 1);
  dag_.operands.insert(dag_.operands.end(), operands.begin(), operands.end());
  before_.assign(known.waits.begin(), known.waits.end());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if ((known.operands >> i & 1) != 0) continue;
    if (dag_.buffers[operands[i].buffer].rank != task.rank) throw std::logic_error("a task names another rank's buffer");
    order_by_access(id, task.stream, operands[i]);
  }
  TaskId& last = last_on_stream_[task.rank][static_cast<std::size_t>(task.stream)];
  if (last != no_id) before_.push_back(last);
  last = id;
  if (before_.size() > 1) {
    std::sort(before_.begin(), before_.end());
    before_.erase(std::unique(before_.begin(), before_.end()), before_.end());
  }
  for (const TaskId before : before_) edges_.emplace_back(before, id);
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
            .attributes = attribute_id(op, labels.phase, attributes),
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
  const std::vector<std::uint32_t>& members = communicators()[communicator].members;
  const RankIndex rank = dag_.buffers[part == no_id ? whole : part].rank;
  const bool is_root = members.at(root) == ranks()[rank].world_rank;
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
  const GroupId group = group_of(communicator, next_call(communicator, rank, op == OpKind::receive), bytes);
  Task task{.op = op,
            .phase = labels.phase,
            .axis = communicators()[communicator].axis,
            .stream = labels.stream,
            .rank = rank,
            .attributes = attribute_id(op, labels.phase, attributes),
            .group = group,
            .micro_batch = labels.micro_batch,
            .layer = labels.layer,
            .chunk = labels.chunk,
            .name = name_id(labels.name)};
  return add_task(task, operands);
}

std::uint32_t DagBuilder::next_call(CommunicatorId communicator, RankIndex rank, bool receives) {
  Calls& calls = calls_[communicator];
  if (calls.last_rank != rank) {
    const auto key = [communicator](RankIndex of) { return std::uint64_t{communicator} << 32 | of; };
    if (calls.last_rank != no_id) calls_of_others_[key(calls.last_rank)] = calls.of_last_rank;
    const auto earlier = calls_of_others_.find(key(rank));
    calls.of_last_rank = earlier == calls_of_others_.end() ? CallCounts{} : earlier->second;
    calls.last_rank = rank;
  }
  return calls.of_last_rank[receives ? 1 : 0]++;
}

GroupId DagBuilder::group_of(CommunicatorId communicator, std::uint32_t call, Bytes bytes) {
  std::vector<GroupId>& groups = calls_[communicator].groups;
  if (call >= groups.size()) {
    groups.push_back(static_cast<GroupId>(dag_.groups.size()));
    dag_.groups.push_back({communicator, bytes});
  }
  const GroupId group = groups[call];
  if (dag_.groups[group].bytes != bytes) {
    throw std::logic_error("members of '" + communicators()[communicator].name + "' disagree on the size of a collective");
  }
  return group;
}

void DagBuilder::depend(TaskId before, TaskId after) {
  if (before != no_id) edges_.emplace_back(before, after);
}

TaskId DagBuilder::last_on(RankIndex rank, Stream stream) const {
  return last_on_stream_[rank][static_cast<std::size_t>(stream)];
}

void DagBuilder::end_rank() {
  dag_.graph.append(dag_.tasks.size() - ended_tasks_, edges_);
  edges_.clear();
  accesses_.clear();
  ended_tasks_ = dag_.tasks.size();
  ended_buffers_ = dag_.buffers.size();
}

void DagBuilder::group_tasks_by_collective() {
  const std::span<const Tasks::Entry> tasks(dag_.tasks.data(), dag_.tasks.size());
  dag_.group_begin.assign(dag_.groups.size() + 1, 0);
  for (const Tasks::Entry& task : tasks)
    if (task.group != no_id) ++dag_.group_begin[task.group + 1];
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
  dag_.group_tasks.resize(dag_.group_begin.back());
  std::vector<std::uint32_t> next(dag_.group_begin.begin(), dag_.group_begin.end() - 1);
  for (std::size_t id = 0; id < tasks.size(); ++id)
    if (tasks[id].group != no_id) dag_.group_tasks[next[tasks[id].group]++] = static_cast<TaskId>(id);
}

Dag DagBuilder::finish() {
  end_rank();
  accesses_ = {};
  edges_ = {};
  group_tasks_by_collective();
  dag_.first_of_kernel = kernels_.take_first();
  return std::move(dag_);
}

}  // namespace tandem
