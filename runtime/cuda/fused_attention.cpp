#include "runtime/cuda/fused_attention.h"

#include <algorithm>

#include "runtime/ops/attention_mask.h"

namespace tandem {
namespace {

/// Returns the first of some positions, of which there is at least one.
std::int32_t first_of(const Positions& positions) {
  std::int32_t first = positions.at(0);
  if (positions.length[1] > 0) first = std::min(first, positions.start[1]);
  return first;
}

std::int32_t last_of(const Positions& positions) {
  std::int32_t last = positions.at(positions.count() - 1);
  if (positions.length[0] > 0) last = std::max(last, positions.start[0] + positions.length[0] - 1);
  return last;
}

bool ascend(const Positions& positions) {
  return positions.length[0] == 0 || positions.length[1] == 0 || positions.start[1] >= positions.start[0] + positions.length[0];
}

}  // namespace

std::optional<FusedAttention> fused_attention(std::span<const OperandType> operands, const AttentionAttributes& attributes) {
  const Shape &q = operands[0].shape, &k = operands[1].shape, &v = operands[2].shape;
  const DType type = operands[0].dtype;
  if (type != DType::bf16 && type != DType::f16) return std::nullopt;
  FusedAttention attention{.micro_batch = q[1],
                           .heads = q[2],
                           .kv_heads = k[2],
                           .queries = q[0],
                           .keys = k[0],
                           .head_dim = q[3],
                           .value_dim = v[3],
                           .type = type};
  if (attention.queries < 1 || attention.keys < 1 || attributes.softcap > 0 || !attributes.documents.starts.empty())
    return std::nullopt;
  const AttentionMask mask = mask_of(attributes);
  const bool looks_back = attributes.causal && mask.first_seen(last_of(attributes.queries)) <= first_of(attributes.keys);
  if (attributes.causal && !looks_back) return std::nullopt;
  if (!attributes.causal || last_of(attributes.keys) <= first_of(attributes.queries)) return attention;
  if (attributes.queries != attributes.keys || !ascend(attributes.queries)) return std::nullopt;
  attention.causal = true;
  return attention;
}

bool libraries_have_backward(const FusedAttention& attention) { return attention.queries > 1 || attention.keys > 1; }

}  // namespace tandem
