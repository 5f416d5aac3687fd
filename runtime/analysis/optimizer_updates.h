#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// What the optimizer reads and writes of a run of parameters on one rank, all of as many elements.
struct OptimizerUpdate {
  RankIndex rank = 0;
  BufferId gradient = no_id;
  BufferId weight = no_id, master = no_id;      ///< the weights of the step, and those that they are cast from
  BufferId momentum = no_id, variance = no_id;  ///< no variance where Muon updates
};

/// Returns all updates, in the order of their tasks. Muon's of one matrix are several tasks: the n-th muon_update of a rank
/// belongs to its n-th muon_momentum.
std::vector<OptimizerUpdate> optimizer_updates(const Dag& dag);

}  // namespace tandem
