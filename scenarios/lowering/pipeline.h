#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "scenarios/lowering/context.h"
#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {

/// Moves activations and their gradients between stages, on streams of their own.
///
/// Sends start when their data is there. A receive is posted one action ahead, as Megatron does: when the action before the one
/// that needs it begins; actions that only add up weight gradients do not count.
///
/// Without overlap a stage exchanges after each action: then it sends what the action made, posts the receives of the next one,
/// and computes on when its sends have arrived. Interleaved, a forward and the backward after it exchange together, as in
/// Megatron: stages that waited after either would wait for each other in a ring. Where micro-batches go both ways (zb-v,
/// dualpipe), receives are posted from the start, lest two neighbours wait for each other to receive.
class PipelineLink {
 public:
  enum class Direction : std::uint8_t {
    forward,
    backward
  };

  PipelineLink(Context& context, const ChunkPlacement& placement) : context_(context), placement_(placement) {}

  /// Returns the input of the current chunk for the current micro-batch: an activation from the part of the model before, or its
  /// gradient from the one after. It is received or, where that part is on the same stage, handed over. The pass computes nothing
  /// before that, not even what it recomputes: Megatron-Core's `recv_backward()` comes before `backward_step()`.
  /// `states`: hidden states of each token, one after the other along the sequence.
  BufferId receive(Direction direction, std::int64_t states);
  void send(Direction direction, BufferId data);
  /// A receive or a send of the action being lowered has been issued.
  void receives(TaskId task);
  void sends(TaskId task);
  /// The compute of an action that may receive or send is lowered in full. `exchanges`: and the stage exchanges after it.
  void end_action(bool exchanges);

 private:
  Context& context_;
  const ChunkPlacement& placement_;
  TaskId last_action_end_ = no_id;
  TaskId action_before_end_ = no_id;                               ///< of the action before the last
  TaskId exchange_ = no_id;                                        ///< compute before the last exchange
  std::vector<TaskId> sent_;                                       ///< since then
  std::map<std::pair<Direction, std::int32_t>, BufferId> handed_;  ///< by micro-batch

  bool scatters() const;
  /// Returns the task after which the receives of the action being lowered are posted, at the earliest; `no_id` means from the
  /// start.
  TaskId posted_after() const;
  std::int32_t part() const { return placement_.part(context_.world.ranks[context_.rank].pp, context_.chunk); }
};

}  // namespace tandem::scenarios
