#pragma once

#include "runtime/ops/operands.h"

namespace tandem {

struct AttentionSizes {
  std::int64_t queries = 0, keys = 0, micro_batch = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;

  AttentionSizes(const Shape& q, const Shape& k, const Shape& v, const Shape& out, const Shape& lse,
                 const AttentionAttributes& attributes)
      : queries(q[0]), keys(k[0]), micro_batch(q[1]), heads(q[2]), kv_heads(k[2]), head_dim(q[3]), value_dim(v[3]) {
    expect_shapes(k == Shape(keys, micro_batch, kv_heads, head_dim), "attention needs k [t,b,K,d]");
    expect_shapes(v == Shape(keys, micro_batch, kv_heads, value_dim), "attention needs v [t,b,K,e]");
    expect_shapes(out == Shape(queries, micro_batch, heads, value_dim), "attention needs out [s,b,H,e]");
    expect_shapes(lse.elements() == micro_batch * heads * queries, "attention needs lse [b,H,s,1]");
    expect_shapes(heads % kv_heads == 0, "attention needs query heads that are a multiple of the key heads");
    expect_shapes((!attributes.causal && attributes.documents.starts.empty()) ||
                      (attributes.queries.count() == queries && attributes.keys.count() == keys),
                  "attention that is causal, or of documents, needs a position for each query and key");
  }

  /// One (micro-batch element, head) of a tensor [positions, b, heads, width]: a matrix whose rows lie `stride` elements apart.
  struct Slice {
    std::int64_t offset = 0, stride = 0;
  };
  Slice query(std::int64_t b, std::int64_t head) const { return slice(b, head, heads, head_dim); }
  Slice key(std::int64_t b, std::int64_t head) const { return slice(b, group_of(head), kv_heads, head_dim); }
  Slice value(std::int64_t b, std::int64_t head) const { return slice(b, group_of(head), kv_heads, value_dim); }
  Slice output(std::int64_t b, std::int64_t head) const { return slice(b, head, heads, value_dim); }

 private:
  std::int64_t group_of(std::int64_t head) const { return head / (heads / kv_heads); }
  Slice slice(std::int64_t b, std::int64_t head, std::int64_t of_heads, std::int64_t width) const {
    return {(b * of_heads + head) * width, micro_batch * of_heads * width};
  }
};

}  // namespace tandem
