#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// One step of a pipeline stage's compute: the forward or the backward of one model chunk for one micro-batch. A backward is
/// whole, or split into the gradient of the chunk's input, which the previous stage waits for, and those of its weights, which
/// can wait.
struct Action {
  enum class Kind : std::uint8_t {
    forward,
    backward,
    backward_input,
    backward_weight
  };
  Kind kind = Kind::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  bool beside_next = false;  ///< lowered in turns with the next action, a backward, so that each hides the other's communication
  /// Where nothing overlaps the exchanges between stages, this one's waits for the next action's (Megatron-LM, schedules.py:
  /// send_forward_backward_recv_forward_backward).
  bool exchanges_with_next = false;
  bool operator==(const Action&) const = default;
};

/// What stage `stage` of `stages` computes, in order, for `micro_batches` micro-batches and `chunks` model chunks.
struct PipelineShape {
  std::int32_t stage = 0;
  std::int32_t stages = 1;
  std::int32_t micro_batches = 1;
  std::int32_t chunks = 1;
  /// A forward runs beside each backward (`Action::beside_next`) for as long as there are forwards. 1F1B then warms up with one
  /// forward more, or its last stage would run a backward beside the forward that it needs. The same in Megatron-Core 0.14
  /// (schedules.py, get_pp_rank_microbatches, with overlap_moe_expert_parallel_comm).
  bool pairs = false;
};

/// All forwards, then all backwards, last micro-batch first (Huang et al. 2019).
std::vector<Action> gpipe(const PipelineShape& shape);

/// Warm up with as many forwards as stages follow, then alternate (Narayanan et al. 2019, PipeDream-Flush). Pairs on one stage
/// alone: on several, each pair would wait for the pair before it on the next stage and on the stage before.
std::vector<Action> one_f_one_b(const PipelineShape& shape);

/// 1F1B over model chunks: micro-batches advance in groups of `stages` through chunk after chunk (Narayanan et al. 2021,
/// Megatron-LM). Needs micro_batches % stages == 0.
std::vector<Action> interleaved_one_f_one_b(const PipelineShape& shape);

/// 1F1B with split backwards: stage s puts the weight gradients off by s micro-batches, so that all stages hold as many
/// activations as 1F1B's first stage does, and weight gradients fill the cool-down (Qi et al. 2023, section 2.2).
std::vector<Action> zero_bubble_h1(const PipelineShape& shape);

/// Two chunks per stage, the second on the way back: the last stage turns a micro-batch around, the first ends it. No stage waits
/// once it has begun if forwards and both parts of backwards take the same time; each holds as much as 1F1B's first stage
/// (Qi et al. 2023, section 6; the order is that of PyTorch's ScheduleZBVZeroBubble).
std::vector<Action> zero_bubble_v(const PipelineShape& shape);

/// Chunk 0 and chunk 1 are of two copies of the model, for micro-batches that enter at the first stage (the first half of them)
/// and at the last; a forward of one goes beside a backward of the other (DeepSeek-AI 2024, DeepSeek-V3, section 3.2.1; the order
/// is that of github.com/deepseek-ai/DualPipe). Needs an even number of stages, and of micro-batches, at least two per stage.
std::vector<Action> dualpipe(const PipelineShape& shape);

}  // namespace tandem::scenarios
