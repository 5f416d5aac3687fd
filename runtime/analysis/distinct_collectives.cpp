#include "runtime/analysis/distinct_collectives.h"

#include <set>
#include <tuple>

namespace tandem {

std::vector<GroupId> distinct_collectives(const Dag& dag) {
  std::set<std::tuple<OpKind, std::uint32_t, CommunicatorId, Bytes, DType>> seen;
  std::vector<GroupId> distinct;
  for (GroupId id = 0; id < dag.groups.size(); ++id) {
    const Group& group = dag.groups[id];
    const TaskId first = dag.members_of(id).front();
    const Task& task = dag.tasks[first];
    const OpKind op = task.op == OpKind::receive ? OpKind::send : task.op;
    const std::span<const Operand> operands = dag.operands_of(first);
    const DType type = operands.empty() ? DType::f32 : dag.buffers[operands.front().buffer].dtype;  // a barrier has none
    if (seen.emplace(op, task.attributes, group.communicator, group.bytes, type).second) distinct.push_back(id);
  }
  return distinct;
}

}  // namespace tandem
