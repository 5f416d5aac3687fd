#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/ops/operation.h"

namespace tandem {

/// An attention as fused kernels of libraries take it: all that the choice of such a kernel depends on.
struct FusedAttention {
  std::int64_t micro_batch = 0, heads = 0, kv_heads = 0;
  std::int64_t queries = 0, keys = 0;
  std::int64_t head_dim = 0, value_dim = 0;
  DType type = DType::bf16;
  bool causal = false;  ///< query i sees the keys 0 .. i
  auto operator<=>(const FusedAttention&) const = default;
};

/// Returns the attention of an operation attention or attention_backward without positions, which libraries do not know. Returns
/// nothing where it is not in bf16 or fp16, with capped scores, or where a query sees neither all keys nor those up to its own
/// index, as in some pairs of chunks that context parallelism makes, and where a window ends before the first key.
std::optional<FusedAttention> fused_attention(std::span<const OperandType> operands, const AttentionAttributes& attributes);

/// Returns false for the backward that cuDNN refuses: of one query and one key, whose gradient through the softmax is zero.
bool libraries_have_backward(const FusedAttention& attention);

}  // namespace tandem
