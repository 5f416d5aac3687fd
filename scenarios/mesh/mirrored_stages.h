#pragma once

#include <cstdint>

#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Pipeline stages of two copies of the model (dualpipe). What a stage does, its mirror does with the copies exchanged: both hold
/// the same parts of the model, the stage behind one is the mirror of that before the other, and micro-batches that enter at one
/// end of the pipeline are to one what those from the other end are to the other. So the two may be one class of ranks, for which
/// a mirrored stage is seen with the slots of the copies exchanged.
class MirroredStages {
 public:
  /// Makes no stage a mirror.
  MirroredStages() = default;
  /// Makes those of the second half mirrors, where both do the same. They don't where micro-batches differ in their documents, or
  /// where matrices are dealt out to ranks chunk by chunk (Muon).
  explicit MirroredStages(const Scenario& scenario);

  bool is_mirror(std::int32_t stage) const { return 2 * stage >= stages_ && stages_ > 0; }
  /// The stage whose program this one has.
  std::int32_t program(std::int32_t stage) const { return is_mirror(stage) ? stages_ - 1 - stage : stage; }
  /// What the slot of this stage's ranks is to those of `program(stage)`, and the other way round.
  Slot seen(Slot slot, std::int32_t stage) const;

 private:
  std::int32_t stages_ = 0;
};

}  // namespace tandem::scenarios
