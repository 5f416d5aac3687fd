#include "runtime/host/loss.h"

#include <spdlog/fmt/fmt.h>

#include <set>
#include <stdexcept>

namespace tandem {

double mean_loss(const HostMemory& memory) {
  const Dag& dag = memory.dag();
  std::set<BufferId> written;
  double loss = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    // Tensor-parallel ranks hold the same loss, others each their share.
    if (task.op != OpKind::cross_entropy_loss || dag.ranks[task.rank].tp != 0) continue;
    const BufferId buffer = dag.operands_of(id).back().buffer;
    if (!written.insert(buffer).second) throw std::logic_error("two micro-batches write their losses to the same buffer");
    loss += *memory.tensor(buffer).f32();
  }
  return loss / dag.info.steps;
}

std::string loss_sentence(const HostMemory& memory) { return fmt::format("loss {:.9g}\n", mean_loss(memory)); }

}  // namespace tandem
