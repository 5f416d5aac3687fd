#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/lowering/context.h"

namespace tandem {

/// Moves activations and their gradients between stages, on streams of their own.
///
/// Sends start when their data is there. A receive is posted one action ahead, as Megatron does: when the action before the one
/// that needs it begins; actions that only add up weight gradients do not count. Without overlap the next action waits until what
/// this one sent has arrived.
class PipelineLink {
 public:
  enum class Direction : std::uint8_t {
    forward,
    backward
  };

  explicit PipelineLink(Context& context) : context_(context) {}

  /// Receives the input of an action: an activation from the previous stage, or its gradient from the next.
  BufferId receive(Direction direction);
  void send(Direction direction, BufferId data);
  /// The compute of an action that may receive or send is lowered in full.
  void end_action();

 private:
  Context& context_;
  TaskId last_action_end_ = no_id;
  TaskId action_before_end_ = no_id;  ///< of the action before the last
};

}  // namespace tandem
