#include "runtime/execution/stored_types.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/dag/distinct_kernels.h"

namespace tandem {
namespace {

bool is_narrow(const Buffer& buffer) { return buffer.dtype == DType::f8 || buffer.dtype == DType::f4; }

/// Whether the kernel knows fp8 with one scale for the tensor.
bool knows_fp8(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  if (task.op == OpKind::attention || task.op == OpKind::attention_backward || task.op == OpKind::adam) return false;
  if (task.op != OpKind::cast) return true;
  const auto* cast = std::get_if<CastAttributes>(&dag.attributes[task.attributes]);
  if (cast != nullptr && cast->in_place) return false;
  return !is_narrow(dag.buffers[dag.operands_of(id).front().buffer]);  // transposes
}

/// Of tensors that are kept in another type, by base buffer.
class WiderTensors {
 public:
  explicit WiderTensors(const Dag& dag) : dag_(dag), wider_(dag.buffers.size(), false) {
    for (BufferId id = 0; id < dag.buffers.size(); ++id) {
      const Buffer& buffer = dag.buffers[id];
      const bool one_scale = buffer.scaling == Scaling::none || buffer.scaling == Scaling::tensor;
      if (is_narrow(buffer) && (buffer.dtype == DType::f4 || !one_scale || buffer.kind == BufferKind::parameter)) add(id);
    }
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (!knows_fp8(dag, id)) add_operands(id);
    add_cast_in_parts();
    add_communicated();
  }
  bool contains(BufferId id) const { return wider_[dag_.buffers[id].base]; }

 private:
  const Dag& dag_;
  std::vector<bool> wider_;

  void add(BufferId id) { wider_[dag_.buffers[id].base] = true; }
  void add_operands(TaskId id) {
    for (const Operand& operand : dag_.operands_of(id))
      if (is_narrow(dag_.buffers[operand.buffer])) add(operand.buffer);
  }

  /// A tensor's parts that are cast one by one have a scale each.
  void add_cast_in_parts() {
    std::map<BufferId, std::set<BufferId>> parts;
    for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
      if (dag_.tasks[id].op != OpKind::cast) continue;
      for (const Operand& operand : dag_.operands_of(id))
        if (operand.access() != Access::read && is_narrow(dag_.buffers[operand.buffer]))
          parts[dag_.buffers[operand.buffer].base].insert(operand.buffer);
    }
    const auto is_same = [&](BufferId a, BufferId b) {
      return dag_.buffers[a].offset == dag_.buffers[b].offset && dag_.buffers[a].shape == dag_.buffers[b].shape;
    };
    for (const auto& [base, written] : parts)
      if (!std::ranges::all_of(written, [&](BufferId part) { return is_same(part, *written.begin()); })) add(base);
  }

  /// What arrives has the scale of who sent it, and parts that arrive from several ranks have one each.
  void add_communicated() {
    for (GroupId group = 0; group < dag_.groups.size(); ++group)
      for (const TaskId id : dag_.members_of(group)) add_operands(id);
  }
};

}  // namespace

Dag stored_on_gpus(Dag dag) {
  const WiderTensors wider(dag);
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    Buffer buffer = dag.buffers[id];
    if (!is_narrow(buffer) || !wider.contains(id)) continue;
    buffer.dtype = DType::bf16;
    buffer.scaling = Scaling::none;
    dag.buffers.set(id, buffer);
  }
  number_kernels(dag);
  return dag;
}

}  // namespace tandem
