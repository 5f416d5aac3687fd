#pragma once

#include "runtime/ops/operands.h"

namespace tandem {

struct AttentionSizes {
  std::int64_t queries = 0, keys = 0, micro_batch = 0, heads = 0, kv_heads = 0, head_dim = 0;

  AttentionSizes(const Shape& q, const Shape& k, const Shape& v, const Shape& out, const Shape& lse,
                 const AttentionAttributes& attributes)
      : queries(q[0]), keys(k[0]), micro_batch(q[1]), heads(q[2]), kv_heads(k[2]), head_dim(q[3]) {
    expect_shapes(k == Shape(keys, micro_batch, kv_heads, head_dim) && v == k, "attention needs k and v [t,b,K,d]");
    expect_shapes(out == q && lse.elements() == micro_batch * heads * queries, "attention needs out [s,b,H,d] and lse [b,H,s,1]");
    expect_shapes(heads % kv_heads == 0, "attention needs query heads that are a multiple of the key heads");
    expect_shapes(!attributes.causal || (attributes.queries.count() == queries && attributes.keys.count() == keys),
                  "causal attention needs a position for each query and key");
  }

  // One (micro-batch element, head) is a matrix [positions, head_dim] whose rows lie `stride` elements apart.
  std::int64_t query_stride() const { return micro_batch * heads * head_dim; }
  std::int64_t key_stride() const { return micro_batch * kv_heads * head_dim; }
  std::int64_t query_offset(std::int64_t b, std::int64_t head) const { return (b * heads + head) * head_dim; }
  std::int64_t key_offset(std::int64_t b, std::int64_t head) const {
    return (b * kv_heads + head / (heads / kv_heads)) * head_dim;
  }
};

}  // namespace tandem
