#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

struct GatedDeltaParameters {
  ParameterId in = 0;    ///< to q | k | v | z | b | a
  ParameterId conv = 0;  ///< taps of each channel of q | k | v
  ParameterId rule = 0;  ///< A_log | dt_bias of each value head
  ParameterId norm = 0, out = 0;
};

/// Gated delta net (Yang et al. 2024, arXiv 2412.06464) as Qwen3-Next has it and Megatron-Core lowers it (`gated_delta_net.py`):
/// one projection, column parallel; a causal convolution of q, k and v; the gated delta rule; a norm of each head, times silu(z);
/// the projection back, row parallel. Heads are sharded over tp.
///
/// Context parallelism is that of Mamba (mamba.h), but the norm is taken where the heads are. Its weight is one for all heads, of
/// which each tensor-parallel rank sees some, so that its gradient is summed over them.
GatedDeltaParameters declare_gated_delta(const Context& context, ChunkParameters& parameters, const std::string& layer);

BufferId gated_delta(Context& context, Tape& tape, const GatedDeltaParameters& weights, BufferId x);

}  // namespace tandem::scenarios
