#include "runtime/execution/read_buffers.h"

namespace tandem {

HostMemory read_buffers(GpuStep& step, const Dag& dag, const std::function<bool(const Buffer&)>& wanted) {
  HostMemory memory(dag, wanted);
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (dag.buffers[id].base == id && wanted(dag.buffers[id])) step.read(id, memory.tensor(id));
  return memory;
}

}  // namespace tandem
