#include "runtime/dag/check_dag.h"

#include <algorithm>

namespace tandem {
namespace {

/// Elements, or -1 where a dimension is negative or the product exceeds what any machine holds.
std::int64_t elements_of(const Shape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 50;
  std::int64_t elements = 1;
  for (const std::int64_t dim : shape.dims) {
    if (dim < 0 || dim > most) return -1;
    if (dim > 0 && elements > most / dim) return -1;
    elements *= dim;
  }
  return shape.rank > shape.dims.size() ? -1 : elements;
}

/// Whether [begin, begin + length) lies in [0, end), without overflow.
bool inside(std::int64_t begin, std::int64_t length, std::int64_t end) {
  return begin >= 0 && length >= 0 && length <= end && begin <= end - length;
}

bool crossings_exist(const Dag& dag, const std::vector<Crossing>& crossings) {
  return std::ranges::all_of(crossings, [&](const Crossing& crossing) { return crossing.link < dag.links.size(); });
}

bool sound(const Dag& dag, const Communicator& communicator) {
  const std::size_t members = communicator.members.size();
  if (members == 0 || communicator.layout.paths.empty()) return false;
  return std::ranges::all_of(communicator.layout.paths, [&](const Paths& paths) {
    return crossings_exist(dag, paths.crossings) && std::ranges::all_of(paths.hops, [&](const Hop& hop) {
             return hop.from < members && hop.to < members && crossings_exist(dag, hop.crossings);
           });
  });
}

bool sound(const Dag& dag, BufferId id) {
  const Buffer& buffer = dag.buffers[id];
  if (buffer.rank >= dag.ranks.size() || buffer.base >= dag.buffers.size()) return false;
  const Buffer& base = dag.buffers[buffer.base];
  const std::int64_t elements = elements_of(buffer.shape);
  const bool own = buffer.base == id && buffer.offset == 0;
  const bool view = base.base == buffer.base && base.rank == buffer.rank && buffer.base != id;
  return elements >= 0 && (own || view) && inside(buffer.offset, elements, elements_of(base.shape));
}

bool sound(const Dag& dag, const ParameterShard& shard) {
  return shard.buffer < dag.buffers.size() && shard.columns > 0 && inside(shard.row, shard.rows, shard.tensor_rows) &&
         inside(shard.column, shard.columns, shard.tensor_columns) &&
         shard.rows <= elements_of(dag.buffers[shard.buffer].shape) / shard.columns &&
         shard.rows * shard.columns == elements_of(dag.buffers[shard.buffer].shape);
}

bool sound(const Dag& dag, const InputShard& shard) {
  const auto& [start, length] = shard.positions;
  return shard.buffer < dag.buffers.size() && shard.vocabulary >= 0 && std::ranges::min(start) >= 0 &&
         std::ranges::min(length) >= 0 && std::int64_t{length[0]} + length[1] <= elements_of(dag.buffers[shard.buffer].shape);
}

bool operands_sound(const Dag& dag, TaskId id) {
  const std::size_t end = id + 1 < dag.tasks.size() ? dag.tasks[id + 1].first_operand : dag.operands.size();
  if (dag.tasks[id].first_operand > end || end > dag.operands.size()) return false;
  return std::ranges::all_of(dag.operands_of(id), [&](const Operand& operand) {
    return operand.buffer < dag.buffers.size() && dag.buffers[operand.buffer].rank == dag.tasks[id].rank;
  });
}

bool sound(const Dag& dag, const Task& task) {
  return task.rank < dag.ranks.size() && task.attributes < dag.attributes.size() && task.name < dag.names.size() &&
         (is_communication(task.op) ? task.group < dag.groups.size() : task.group == no_id);
}

/// Every task of a group is listed once, under its group.
bool groups_sound(const Dag& dag) {
  if (dag.group_begin.size() != dag.groups.size() + 1 || dag.group_begin.front() != 0 ||
      dag.group_begin.back() != dag.group_tasks.size() || !std::ranges::is_sorted(dag.group_begin))
    return false;
  std::vector<bool> listed(dag.tasks.size(), false);
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    if (dag.group_begin[group] == dag.group_begin[group + 1]) return false;
    for (const TaskId task : dag.members_of(group)) {
      if (task >= dag.tasks.size() || dag.tasks[task].group != group || listed[task]) return false;
      listed[task] = true;
    }
  }
  const auto grouped = std::ranges::count_if(dag.tasks, [](const Task& task) { return task.group != no_id; });
  return static_cast<std::size_t>(grouped) == dag.group_tasks.size();
}

}  // namespace

std::string first_flaw(const Dag& dag) {
  const auto is_sound = [&](const auto& record) { return sound(dag, record); };
  for (const Device& device : dag.devices) {
    if (const std::string flaw = first_flaw(Profile{{}, device.measured, device.collectives, device.site}); !flaw.empty())
      return "a device whose " + flaw;
  }
  for (const Rank& rank : dag.ranks) {
    if (rank.device >= dag.devices.size()) return "a rank without device";
    if (rank.world_rank >= dag.info.gpus) return "a rank outside of the world";
    if (rank.mirrored >= std::max(rank.count, 1U)) return "a rank that stands for none of its stage";
    if (rank.pp < 0 || rank.pp >= dag.info.stages) return "a rank of a pipeline stage that is not there";
  }
  if (dag.ranks.empty() || dag.info.steps < 1) return "a DAG without ranks or steps";
  if (dag.info.stages > dag.info.gpus) return "more pipeline stages than GPUs";
  if (!std::ranges::all_of(dag.communicators, is_sound)) return "a communicator that does not lie on the links";
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    if (!sound(dag, id)) return "buffer " + std::to_string(id) + " is no buffer of its rank";
  }
  if (!std::ranges::all_of(dag.shards, is_sound)) return "a shard that does not lie in its tensor and buffer";
  if (!std::ranges::all_of(dag.inputs, is_sound)) return "an input that does not lie in its buffer";
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (!sound(dag, dag.tasks[id]) || !operands_sound(dag, id))
      return "task " + std::to_string(id) + " refers to what is not there";
  }
  if (!dag.tasks.empty() && dag.tasks.front().first_operand != 0) return "an operand without task";
  if (!std::ranges::all_of(dag.groups, [&](const Group& g) { return g.communicator < dag.communicators.size(); }))
    return "a collective without communicator";
  if (!groups_sound(dag)) return "a collective whose tasks are others'";
  if (!std::ranges::all_of(dag.graph.targets(), [&](TaskId id) { return id < dag.tasks.size(); }))
    return "an edge that leads to no task";
  return "";
}

}  // namespace tandem
