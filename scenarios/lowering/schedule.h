#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/scenario.h"

namespace tandem {

/// One step of a pipeline stage's compute: the forward or the whole backward of one model chunk for one micro-batch.
struct Action {
  enum class Kind : std::uint8_t {
    forward,
    backward
  };
  Kind kind = Kind::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  bool operator==(const Action&) const = default;
};

/// What stage `stage` of `stages` computes, in order, for `micro_batches` micro-batches and `chunks` model chunks.
struct PipelineShape {
  std::int32_t stage = 0;
  std::int32_t stages = 1;
  std::int32_t micro_batches = 1;
  std::int32_t chunks = 1;
};

/// All forwards, then all backwards, last micro-batch first (Huang et al. 2019).
std::vector<Action> gpipe(const PipelineShape& shape);

/// Warm up with as many forwards as stages follow, then alternate (Narayanan et al. 2019, PipeDream-Flush).
std::vector<Action> one_f_one_b(const PipelineShape& shape);

/// 1F1B over model chunks: micro-batches advance in groups of `stages` through chunk after chunk (Narayanan et al. 2021,
/// Megatron-LM). Needs micro_batches % stages == 0.
std::vector<Action> interleaved_one_f_one_b(const PipelineShape& shape);

std::vector<Action> schedule(ScheduleKind kind, const PipelineShape& shape);

}  // namespace tandem
