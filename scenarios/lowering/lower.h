#pragma once

#include "runtime/dag/dag.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/packed_documents.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Which steps of the optimizer to lower, one after the other.
struct StepRange {
  std::int32_t count = 1;
  bool averages = true;             ///< with local steps: the replicas' weights, after the last
  std::int64_t first_sequence = 0;  ///< of the first step's batch
  /// What gradients lost on their way is added to them again, to be compared with those that lost nothing (compressor.h).
  bool restores_residuals = false;
  std::int32_t micro_batches = 0;  ///< of each step; 0: all of the global batch
  std::int64_t stride = 0;         ///< sequences from one step's batch to the next's; 0: the global batch
  /// Copies passes from others that are alike (repeated_passes.h), which costs less and makes the same graph.
  bool copies_passes = true;
  /// Copies ranks from others of the same program: the graph takes the same time and memory. Attributes are those of the rank
  /// that was copied, and what inputs hold is not told: not for a graph that is executed or written.
  bool copies_ranks = false;
};

/// From one exchange of all data-parallel ranks to the next: one step, or as many as local SGD takes.
StepRange period_of(const Scenario& scenario);

/// Lowers training steps for the ranks of `world`: all of them to execute, one of each class to simulate. Nothing else differs.
/// Several steps need ZeRO-0.
Dag lower(const Scenario& scenario, const World& world, const StepRange& steps = {});
/// Lowers one step for these ranks of `world` alone. Their tasks are those that they have among all, in the same order; what
/// others do, and would keep them waiting with, is left out.
Dag lower_alone(const Scenario& scenario, const World& world, const std::vector<RankIndex>& ranks);

}  // namespace tandem::scenarios
