#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "scenarios/schedules/chunk_placement.h"
#include "scenarios/schedules/schedule_table.h"
#include "studies/search/mesh_network.h"
#include "studies/search/pass_cost.h"

namespace tandem::studies {

/// A micro-batch's pass through one part of the model. See PassTimes.
struct PartPass {
  Seconds from_stream = 0;  ///< from the end of what the rank computed before to the end of the pass's last kernel
  Seconds from_input = 0;   ///< the same from the arrival of its input
  Seconds to_send = 0;      ///< from there until what it makes can be sent
  Seconds kernels = 0;      ///< alone
};

/// One part of the model (see ChunkPlacement): its passes, what it keeps, its weights.
struct PartCosts {
  PartPass forward, backward;
  Seconds weights = 0;                                 ///< of the backward's second half, where the schedule splits it
  Bytes kept = 0;                                      ///< of a micro-batch, from its forward to its backward
  Bytes passing = 0;                                   ///< more than that at the fullest moment
  std::int64_t parameters = 0, expert_parameters = 0;  ///< elements on a rank
  std::int64_t layers = 0;
  Seconds gather = 0;         ///< of the weights, over those that share them
  Seconds reduce = 0;         ///< of the gradients
  Seconds update = 0;         ///< the optimizer's kernels
  Bytes states = 0;           ///< weights, gradients and optimizer states that live for the whole step
  Bytes whole_gradients = 0;  ///< more, from the first backward on, where gradients are kept in slices (ZeRO-2 and 3)
};

/// All that bounds need to know of a plan.
struct StageCosts {
  std::vector<PartCosts> parts;
  std::vector<Seconds> to_next;  ///< by stage: a transfer to the next, from the last to the first
};

/// Makes them, and remembers what plans have in common.
class StageCostModel {
 public:
  StageCosts of(const Scenario& scenario);
  /// What `of` asks for costs of layers; to find many of them at once.
  PassCosts& passes() { return passes_; }

 private:
  PassCosts passes_;
  MeshNetwork network_;
};

}  // namespace tandem::studies
