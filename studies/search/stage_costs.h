#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "scenarios/schedules/chunk_placement.h"
#include "scenarios/schedules/schedule_table.h"
#include "studies/search/mesh_network.h"
#include "studies/search/pair_cost.h"
#include "studies/search/pass_cost.h"

namespace tandem::studies {

/// A pass that goes on in turns with another, a piece at a time: layers, and the model's ends. A piece takes from the begin of
/// its first kernel to the end of its last.
struct PassInTurns {
  Seconds pieces = 0;      ///< all of them
  Seconds opening = 0;     ///< the model's end before the first layer
  Seconds first = 0;       ///< the opening and the first layer
  Seconds from_input = 0;  ///< from the arrival of the pass's input to the end of its first layer
  Seconds last = 0;        ///< the last layer and the closing
  Seconds closing = 0;     ///< the model's end after the last layer
  Seconds longest = 0;     ///< of the layers
};

/// A micro-batch's pass through one part of the model. See PassTimes.
struct PartPass {
  Seconds from_stream = 0;  ///< from the end of the rank's kernel before the pass to the end of the pass's last kernel
  Seconds from_input = 0;   ///< from the arrival of the pass's input to the same end
  Seconds to_send = 0;      ///< from that end until the pass's output can be sent; below 0 where weight gradients come after it
  Seconds kernels = 0;      ///< time of the kernels alone
  PassInTurns in_turns;
};

/// The costs of one part of the model (see ChunkPlacement).
struct PartCosts {
  PartPass forward, backward;
  PartPass whole;              ///< the backward, where the schedule splits others and not this one; else `backward`
  Seconds weights = 0;         ///< of the backward's second half, where the schedule splits it
  Bytes kept = 0;              ///< of a micro-batch, from its forward to its backward
  Bytes kept_for_weights = 0;  ///< of a micro-batch, from the first half of its backward to the second, where it is split
  Bytes passing = 0;           ///< more than `kept` at the fullest moment
  Bytes casts_for_forward = 0, casts_for_backward = 0;  ///< of weights, from the first pass to the last
  std::int64_t parameters = 0, expert_parameters = 0;   ///< elements on a rank
  std::int64_t layers = 0;
  Seconds gather = 0;         ///< of the weights, over the ranks that share them
  Seconds layers_gather = 0;  ///< with ZeRO-3, what of `gather` is the layers'
  Seconds most_gather = 0;    ///< and what no layer's is more than
  Seconds reduce = 0;         ///< of the gradients
  Seconds update = 0;         ///< the optimizer's kernels
  Bytes states = 0;           ///< weights, gradients and optimizer states that live for the whole step
  Bytes whole_gradients = 0;  ///< beyond `states` from the first backward on, where gradients are kept in slices (ZeRO-2 and 3)
  Bytes whole_weights = 0;    ///< the same of weights from the first forward on, where these are kept in slices (ZeRO-3)
};

/// All that the bounds of a plan are computed from.
struct StageCosts {
  std::vector<PartCosts> parts;
  std::vector<Seconds> to_next;  ///< by stage: time of a transfer to the next stage; of the last stage, to the first
  /// Where a forward hides exchanges beside a backward, in the order of PairCosts::all_of.
  std::vector<PairCost> pairs;

  const PairCost& pair_of(const ChunkPlacement& placement, std::int32_t stage, const Action& forward,
                          const Action& backward) const {
    const std::int32_t chunks = placement.chunks();
    const std::int32_t at = (stage * chunks + forward.chunk) * chunks + backward.chunk;
    return pairs.at(static_cast<std::size_t>(at));
  }
};

/// Computes the costs of stages, and remembers what plans have in common.
class StageCostModel {
 public:
  /// `ranks`: whose tasks the times of passes are found among; costs of pairs are found with all ranks alone. All else is the
  /// same.
  StageCosts of(const Scenario& scenario, PassRanks ranks = PassRanks::all);
  /// Return where `of` finds the costs of layers and of pairs, so that a caller can have many of them found at once.
  PassCosts& passes() { return passes_; }
  PairCosts& pairs() { return pairs_; }

 private:
  PassCosts passes_;
  PairCosts pairs_;
  MeshNetwork network_;
};

}  // namespace tandem::studies
