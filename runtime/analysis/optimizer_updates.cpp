#include "runtime/analysis/optimizer_updates.h"

#include <deque>
#include <stdexcept>

namespace tandem {

std::vector<OptimizerUpdate> optimizer_updates(const Dag& dag) {
  std::vector<OptimizerUpdate> updates;
  std::vector<std::deque<OptimizerUpdate>> begun(dag.ranks.size());  // by rank: Muon's momenta whose weights are still to come
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const RankIndex rank = dag.tasks[id].rank;
    const std::span<const Operand> operands = dag.operands_of(id);
    const auto buffer = [&](std::size_t i) { return static_cast<BufferId>(operands[i].buffer); };
    switch (dag.tasks[id].op) {
      case OpKind::adam:  // gradient, norm; parameter, master, m, v
        updates.push_back({rank, buffer(0), buffer(2), buffer(3), buffer(4), buffer(5)});
        break;
      case OpKind::update_expert_bias:  // counts; biases
        updates.push_back(
            {.rank = rank, .gradient = buffer(0), .weight = buffer(1), .master = buffer(1), .follows_counts = true});
        break;
      case OpKind::muon_momentum:  // gradient, norm; u, momentum
        begun[rank].push_back({.rank = rank, .gradient = buffer(0), .momentum = buffer(3)});
        break;
      case OpKind::muon_update: {  // x; parameter, master
        if (begun[rank].empty()) throw std::logic_error("a muon_update comes without its muon_momentum");
        OptimizerUpdate update = begun[rank].front();
        begun[rank].pop_front();
        update.weight = buffer(1);
        update.master = buffer(2);
        updates.push_back(update);
        break;
      }
      case OpKind::adafactor_update: {  // gradient, norm, state, squares; parameter, master
        OptimizerUpdate update{.rank = rank, .gradient = buffer(0), .weight = buffer(4), .master = buffer(5)};
        const bool factored = std::get<AdafactorAttributes>(dag.attributes[dag.tasks[id].attributes]).factored;
        (factored ? update.factors : update.variance) = buffer(2);
        updates.push_back(update);
        break;
      }
      default:
        break;
    }
  }
  return updates;
}

}  // namespace tandem
