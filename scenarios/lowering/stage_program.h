#pragma once

#include <optional>
#include <vector>

#include "scenarios/lowering/chunk_program.h"
#include "scenarios/lowering/context.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/lowering/pipeline.h"
#include "scenarios/lowering/sharded_weights.h"
#include "scenarios/schedules/chunk_placement.h"
#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

/// One rank's steps: declares what its chunks hold, then follows its stage's schedule.
class StageProgram {
 public:
  explicit StageProgram(Context& context);
  void lower(const StepRange& steps);
  /// Lowers one step that does these things in this order, in place of the schedule's.
  void lower_step(const std::vector<Action>& schedule);
  /// How many passes were copied so far (repeated_passes.h).
  std::size_t copied_passes() const { return copied_; }

 private:
  Context& context_;
  const ChunkPlacement placement_;
  PipelineLink link_;
  std::vector<ChunkProgram> chunks_;
  std::vector<bool> cleared_;                      ///< by chunk: its gradients were set to zero
  std::optional<ShardedWeights> sharded_weights_;  ///< with ZeRO-3
  std::size_t copied_ = 0;

  std::vector<Action> actions(std::int32_t micro_batches) const;
  void shard_weights(const std::vector<Action>& actions);
  void follow(const std::vector<Action>& actions);
  ChunkProgram::Pieces pieces_of(const Action& action);
};

}  // namespace tandem::scenarios
