#include "runtime/analysis/framework_memory.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace tandem {
namespace {

/// The type that a product multiplies in, which its placeholder has.
DType operand_type(const Dag& dag, TaskId id) { return dag.buffers[dag.operands_of(id).front().buffer].dtype; }

/// The gradient that a product of a framework's own adds to; no_id for any other task.
BufferId summed_gradient(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  if (task.op != OpKind::gemm && task.op != OpKind::grouped_gemm) return no_id;
  for (const Operand& operand : dag.operands_of(id)) {
    if (operand.access() != Access::update) continue;
    const BufferId base = dag.buffers[operand.buffer].base;
    if (dag.buffers[base].kind == BufferKind::gradient) return operand.buffer;
  }
  return no_id;
}

/// Of the matrix that the task multiplies by: one of them, where it is a product of groups.
Shape matrix_of(const Dag& dag, TaskId id, BufferId gradient) {
  const Shape shape = dag.buffers[gradient].shape;
  const auto* grouped = std::get_if<GroupedGemmAttributes>(&dag.attributes[dag.tasks[id].attributes]);
  if (grouped == nullptr) return shape;
  const auto groups = std::max<std::int64_t>(1, static_cast<std::int64_t>(grouped->rows.size()));
  return Shape(shape[0] / groups, shape[1]);
}

}  // namespace

std::vector<std::vector<Placeholder>> lasting_placeholders(const Dag& dag) {
  std::vector<std::vector<Placeholder>> placeholders(dag.ranks.size());
  if (!dag.software.placeholder_gradients) return placeholders;
  using Product = std::tuple<RankIndex, std::int16_t, std::int16_t, std::uint16_t>;  // rank, chunk, layer, name
  struct Weight {
    std::int64_t rows = 0, columns = 0;
    DType type = DType::f32;
    TaskId first = no_id;
  };
  std::map<Product, Weight> weights;
  std::vector<bool> seen(dag.buffers.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.layer < 0) continue;
    const BufferId gradient = summed_gradient(dag, id);
    if (gradient == no_id || seen[gradient]) continue;
    seen[gradient] = true;
    const Shape shape = matrix_of(dag, id, gradient);
    Weight& weight = weights[{task.rank, task.chunk, task.layer, task.name}];
    weight.rows += shape[0];
    weight.columns = shape[1];
    weight.type = operand_type(dag, id);
    weight.first = std::min(weight.first, id);
  }
  std::map<std::tuple<RankIndex, std::int64_t, std::int64_t, DType>, TaskId> firsts;
  for (const auto& [product, weight] : weights) {
    const auto shape = std::tuple{std::get<RankIndex>(product), weight.rows, weight.columns, weight.type};
    const auto [found, is_new] = firsts.try_emplace(shape, weight.first);
    if (!is_new) found->second = std::min(found->second, weight.first);
  }
  for (const auto& [shape, first] : firsts) {
    const auto& [rank, rows, columns, type] = shape;
    placeholders[rank].push_back({.bytes = size_of(type, rows * columns), .first = first});
  }
  return placeholders;
}

std::vector<FrameworkMemory> framework_memory(const Dag& dag, const std::vector<std::vector<Placeholder>>& placeholders) {
  std::vector<FrameworkMemory> memory(dag.ranks.size());
  for (RankIndex rank = 0; rank < memory.size(); ++rank) {
    const Architecture architecture =
        dag.devices.empty() ? Architecture::unknown : dag.devices[dag.ranks[rank].device].architecture;
    memory[rank].reserved = dag.software.reserved;
    memory[rank].workspaces = dag.software.workspaces[static_cast<std::size_t>(architecture)];
  }
  for (RankIndex rank = 0; rank < memory.size(); ++rank)
    for (const Placeholder& placeholder : placeholders[rank]) memory[rank].placeholders += placeholder.bytes;
  return memory;
}

Bytes passing_placeholder(const Dag& dag, TaskId id) {
  if (!dag.software.placeholder_gradients || dag.tasks[id].layer >= 0) return 0;
  const BufferId gradient = summed_gradient(dag, id);
  if (gradient == no_id) return 0;
  return size_of(operand_type(dag, id), matrix_of(dag, id, gradient).elements());
}

}  // namespace tandem
