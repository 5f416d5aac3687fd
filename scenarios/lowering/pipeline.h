#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "scenarios/lowering/context.h"
#include "scenarios/placement.h"

namespace tandem {

/// Moves activations and their gradients between stages, on streams of their own.
///
/// Sends start when their data is there. A receive is posted one action ahead, as Megatron does: when the action before the one
/// that needs it begins; actions that only add up weight gradients do not count. Without overlap the next action waits until what
/// this one sent has arrived; where micro-batches go both ways (zb-v, dualpipe), receives are then posted from the start, lest
/// two neighbours wait for each other to receive.
class PipelineLink {
 public:
  enum class Direction : std::uint8_t {
    forward,
    backward
  };

  PipelineLink(Context& context, const Placement& placement) : context_(context), placement_(placement) {}

  /// The input of the current chunk for the current micro-batch: an activation from the part of the model before, or its gradient
  /// from the one after. Received, or where that part is the same stage's, handed over.
  BufferId receive(Direction direction);
  void send(Direction direction, BufferId data);
  /// The compute of an action that may receive or send is lowered in full.
  void end_action();

 private:
  Context& context_;
  const Placement& placement_;
  TaskId last_action_end_ = no_id;
  TaskId action_before_end_ = no_id;                               ///< of the action before the last
  std::map<std::pair<Direction, std::int32_t>, BufferId> handed_;  ///< by micro-batch

  std::int32_t part() const { return placement_.part(context_.world.ranks[context_.rank].pp, context_.chunk); }
};

}  // namespace tandem
