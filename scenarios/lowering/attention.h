#pragma once

#include <optional>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

struct AttentionParameters {
  std::vector<ParameterId> qkv;  ///< one weight; where tensor-parallel ranks share key-value heads, q apart from k and v
  ParameterId output = 0;
  std::vector<ParameterId> qkv_bias = {};  ///< one for each of the weights, or none
  std::optional<ParameterId> output_bias = {};
  std::optional<ParameterId> gate = {};  ///< as q; multiplied beside `qkv`
  std::optional<ParameterId> query_norm = {}, key_norm = {};
  std::optional<ParameterId> sink = {};  ///< a score for each head
};

/// Multi-head or grouped-query attention, heads sharded over tp: one projection to q, k and v, rotary embedding, attention,
/// output projection; linear biases, norms of queries and keys, sinks, and gates of the heads' outputs where the model has them.
/// Norms over all heads of a token add up squares over tensor-parallel ranks.
///
/// With more ranks than key-value heads, every rank has one of these, and tp / kv_heads neighbours the same one. Each sees the
/// gradient of its own queries alone, so that of the weights of k and v is summed over these neighbours at the end of the step.
AttentionParameters declare_attention(const Context& context, ChunkParameters& parameters, const std::string& layer);

BufferId attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId x);

}  // namespace tandem::scenarios
