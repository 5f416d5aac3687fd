#include "runtime/dag/dag.h"

#include <array>
#include <stdexcept>

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

void TaskGraph::append(std::size_t tasks, std::span<const Edge> edges) {
  const std::size_t first = this->tasks();
  // While targets are filled in, the offset of a task lies one place further on, and counts up to where the next one's begin.
  begin_.resize(first + tasks + 2, 0);
  for (const auto& [from, to] : edges) {
    if (from < first) throw std::logic_error("a task waits for one that nothing was to wait for any more");
    ++begin_[from + 2];
  }
  begin_[first + 1] = begin_[first];
  for (std::size_t id = first; id < first + tasks; ++id) begin_[id + 2] += begin_[id + 1];
  targets_.resize(targets_.size() + edges.size());
  for (const auto& [from, to] : edges) targets_[begin_[from + 1]++] = to;
  begin_.pop_back();
}

void TaskGraph::append(const TaskGraph& other) {
  if (other.tasks() == 0) return;
  const auto first = static_cast<TaskId>(tasks());
  const auto first_target = static_cast<std::uint32_t>(targets_.size());
  if (begin_.empty()) begin_.push_back(0);
  begin_.insert(begin_.end(), other.begin_.begin() + 1, other.begin_.end());
  targets_.insert(targets_.end(), other.targets_.begin(), other.targets_.end());
  for (std::uint32_t& begin : std::span(begin_).last(other.tasks())) begin += first_target;
  for (TaskId& target : std::span(targets_).last(other.targets_.size())) target += first;
}

void TaskGraph::reserve(std::size_t tasks, std::size_t edges) {
  begin_.reserve(tasks + 2);
  targets_.reserve(edges);
}

void TaskGraph::clear() {
  begin_.clear();
  targets_.clear();
}

}  // namespace tandem
