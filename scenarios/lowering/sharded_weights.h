#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// A part of a model chunk that computes with the weights of a few units: the embedding, a layer, the head.
struct Section {
  std::int16_t layer = -1;
  std::vector<std::size_t> units;
};

/// One pass through a section.
struct Visit {
  std::size_t chunk = 0;
  std::size_t section = 0;
  std::int32_t micro_batch = 0;
  bool backward = false;
  bool again = false;  ///< a forward that is recomputed
  bool operator==(const Visit&) const = default;
};

/// ZeRO-3 (FSDP): a rank keeps a slice of each unit's weights and gathers the rest for each visit, `parallelism.prefetch` visits
/// ahead. When a visit ends, its weights are dropped, unless
/// - another visit within reach of the prefetch needs them: they would be gathered again at once. So the head, whose backward
///   follows its forward, is gathered once (torchtitan leaves out the resharding of its last layers for the same reason);
/// - `reshard_after_forward` is off and a micro-batch that went forward has yet to come back;
/// - `gather_per_micro_batch` is off and any visit is left in the step.
///
/// The whole gradients of a unit live from its first backward to their reduction.
class ShardedWeights {
 public:
  /// `sections`: of each chunk. `plan`: all visits of the step, in order.
  ShardedWeights(Context& context, std::vector<std::vector<Section>> sections, std::vector<Visit> plan);

  /// Begins the next visit of the plan. Throws std::logic_error when `visit` is another.
  void enter(const Visit& visit);
  void leave();

 private:
  struct Unit {
    bool gathered = false;
    bool gradient_cleared = false;
    int in_flight = 0;  ///< visits that went forward and have yet to come back
  };
  Context& context_;
  std::vector<std::vector<Section>> sections_;
  std::vector<Visit> plan_;
  std::size_t current_ = 0;  ///< index into the plan
  std::size_t depth_;
  std::vector<std::vector<Unit>> units_;  ///< [chunk][unit]

  const Section& section_of(const Visit& visit) const { return sections_[visit.chunk][visit.section]; }
  std::size_t next_use(std::size_t chunk, std::size_t unit) const;
  bool keeps(std::size_t chunk, std::size_t unit) const;
  void gather(const Visit& visit, std::size_t unit, TaskId before);
  void drop(std::size_t chunk, std::size_t unit);
  void clear_gradients(std::size_t chunk, std::size_t unit);
};

}  // namespace tandem::scenarios
