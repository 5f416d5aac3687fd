#pragma once

#include "scenarios/lowering/context.h"

namespace tandem {

struct AttentionParameters {
  ParameterId qkv = 0;
  ParameterId output = 0;
};

/// Multi-head or grouped-query attention, heads sharded over tp: one projection to q, k and v, rotary embedding, causal flash
/// attention, output projection.
AttentionParameters declare_attention(const Context& context, ChunkParameters& parameters, const std::string& layer);

BufferId attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId x);

}  // namespace tandem
