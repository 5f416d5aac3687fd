#pragma once

#include "scenarios/lowering/context.h"

namespace tandem {

struct MlpParameters {
  ParameterId up = 0;  ///< gate and up projection in one, where the MLP is gated
  ParameterId down = 0;
};

/// SwiGLU or GELU MLP, inner width sharded over tp.
MlpParameters declare_mlp(const Context& context, ChunkParameters& parameters, const std::string& layer);

BufferId mlp(Context& context, Tape& tape, const MlpParameters& weights, BufferId x);

}  // namespace tandem
