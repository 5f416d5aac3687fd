#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// What the optimizer reads and writes of a run of parameters on one rank, all but `factors` of as many elements. Biases of
/// experts are their own master copy, and follow the counts of choices for a gradient.
struct OptimizerUpdate {
  RankIndex rank = 0;
  BufferId gradient = no_id;
  BufferId weight = no_id, master = no_id;      ///< the weights of the step, and those that they are cast from
  BufferId momentum = no_id, variance = no_id;  ///< no variance where Muon updates, no momentum where Adafactor does
  BufferId factors = no_id;                     ///< of Adafactor's estimate of variances
  bool follows_counts = false;                  ///< biases of experts
};

/// Returns all updates, in the order of their tasks. Muon's of one matrix are several tasks: the n-th muon_update of a rank
/// belongs to its n-th muon_momentum.
std::vector<OptimizerUpdate> optimizer_updates(const Dag& dag);

}  // namespace tandem
