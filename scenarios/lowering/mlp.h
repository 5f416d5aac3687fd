#pragma once

#include <optional>
#include <vector>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

struct MlpParameters {
  ParameterId up = 0;  ///< gate and up projection in one, where the MLP is gated
  ParameterId down = 0;
  std::int64_t width = 0;                 ///< inner, on this rank
  std::vector<ParameterId> up_bias = {};  ///< one or none
  std::optional<ParameterId> down_bias = {};
};

/// SwiGLU or GELU MLP, inner width sharded over tp: `width` on this rank.
MlpParameters declare_mlp(const Context& context, ChunkParameters& parameters, const std::string& layer, std::int64_t width);

BufferId activate(Context& context, Tape& tape, BufferId x, std::int64_t width);

BufferId mlp(Context& context, Tape& tape, const MlpParameters& weights, BufferId x);

}  // namespace tandem::scenarios
