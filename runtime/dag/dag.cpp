#include "runtime/dag/dag.h"

#include <array>

namespace tandem {
namespace {

template <typename Enum, std::size_t N>
std::string_view pick(const std::array<std::string_view, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

}  // namespace

std::string_view name_of(Phase phase) {
  static constexpr std::array<std::string_view, 5> names{"forward", "backward-input", "backward-weight", "recompute",
                                                         "optimizer"};
  return pick(names, phase);
}

std::string_view name_of(Stream stream) {
  static constexpr std::array<std::string_view, stream_count> names{"compute",
                                                                    name_of(Axis::tp),
                                                                    "tp receive",
                                                                    name_of(Axis::cp),
                                                                    "cp receive",
                                                                    name_of(Axis::ep),
                                                                    name_of(Axis::dp),
                                                                    "pp send forward",
                                                                    "pp receive forward",
                                                                    "pp send backward",
                                                                    "pp receive backward",
                                                                    "pp send forward, descending",
                                                                    "pp receive forward, descending",
                                                                    "pp send backward, descending",
                                                                    "pp receive backward, descending",
                                                                    "to host",
                                                                    "host",
                                                                    "from host"};
  return pick(names, stream);
}

std::string_view name_of(BufferKind kind) {
  static constexpr std::array<std::string_view, 7> names{"parameter",     "gradient", "optimizer", "activation",
                                                         "communication", "input",    "host"};
  return pick(names, kind);
}

TimedKernel kernel_of(const Dag& dag, TaskId id) {
  TimedKernel kernel{.op = dag.tasks[id].op, .operands = {}, .attributes = dag.attributes[dag.tasks[id].attributes]};
  for (const Operand& operand : dag.operands_of(id)) {
    const Buffer& buffer = dag.buffers[operand.buffer];
    kernel.operands.push_back({buffer.shape, buffer.dtype, buffer.scaling});
  }
  return kernel;
}

OpCost cost_of(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  const Operation& op = operation(task.op);
  if (op.cost == nullptr || is_fused(dag.attributes[task.attributes])) return {};
  std::array<OperandType, most_operands> types;
  std::size_t count = 0;
  for (const Operand& operand : dag.operands_of(id)) {
    const Buffer& buffer = dag.buffers[operand.buffer];
    types.at(count++) = {buffer.shape, buffer.dtype, buffer.scaling};
  }
  return op.cost({types.data(), count}, dag.attributes[task.attributes]);
}

TaskGraph::TaskGraph(std::size_t tasks, std::span<const Edge> edges) : begin_(tasks + 1, 0), targets_(edges.size()) {
  for (const auto& [from, to] : edges) ++begin_[from + 1];
  for (std::size_t id = 0; id < tasks; ++id) begin_[id + 1] += begin_[id];
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (const auto& [from, to] : edges) targets_[next[from]++] = to;
}

}  // namespace tandem
