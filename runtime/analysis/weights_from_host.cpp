#include "runtime/analysis/weights_from_host.h"

namespace tandem {

std::map<BufferId, BufferId> copied_from_host(const Dag& dag) {
  std::map<BufferId, BufferId> found;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::copy) continue;
    const std::span<const Operand> operands = dag.operands_of(id);
    if (dag.buffers[operands[0].buffer].kind == BufferKind::host) found.emplace(operands[0].buffer, operands[1].buffer);
  }
  return found;
}

}  // namespace tandem
