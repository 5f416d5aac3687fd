#include "runtime/host/loss.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <set>
#include <stdexcept>

namespace tandem {

double loss_share(const HostMemory& memory, RankIndex rank) {
  const Dag& dag = memory.dag();
  if (dag.ranks[rank].tp != 0) return 0;  // tensor-parallel ranks hold the same loss, others each their share
  std::set<BufferId> written;
  double loss = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.op != OpKind::cross_entropy_loss || task.rank != rank) continue;
    const BufferId buffer = dag.operands_of(id).back().buffer;
    if (!written.insert(buffer).second) throw std::logic_error("two micro-batches write their losses to the same buffer");
    loss += *memory.tensor(buffer).f32();
  }
  return loss;
}

double mean_loss(const HostMemory& memory) {
  double loss = 0;
  for (RankIndex rank = 0; rank < memory.dag().ranks.size(); ++rank) loss += loss_share(memory, rank);
  return loss / memory.dag().info.steps;
}

void refuse_broken_loss(double loss) {
  if (!std::isfinite(loss)) throw std::runtime_error(fmt::format("the loss is {}: the step computed no numbers", loss));
}

std::string loss_sentence(double loss) { return fmt::format("loss {:.9g}\n", loss); }
std::string loss_sentence(const HostMemory& memory) { return loss_sentence(mean_loss(memory)); }

}  // namespace tandem
