#pragma once

#include "runtime/ops/operands.h"

namespace tandem {

/// What the operations on chosen keys have in common.
struct SparseSizes {
  std::int64_t queries = 0, keys = 0, micro_batch = 0, heads = 0, width = 0, most = 0;

  /// `q` [s,b,H,d], `k` [t,b,1,d], `chosen` [b,s,K]
  SparseSizes(const Shape& q, const Shape& k, const Shape& chosen, const SparseAttentionAttributes& attributes)
      : queries(q[0]), keys(k[0]), micro_batch(q[1]), heads(q[2]), width(columns_of(q)), most(columns_of(chosen)) {
    expect_shapes(q.rank == 4, "chosen keys need queries [s,b,H,d]");
    expect_shapes(k.elements() == keys * micro_batch * width && k[1] == micro_batch, "chosen keys are [t,b,1,d]");
    expect_shapes(chosen == Shape(micro_batch, queries, most) && most <= keys, "chosen keys are numbered [b,s,K]");
    expect_shapes(attributes.queries.count() == queries && attributes.keys.count() == keys,
                  "chosen keys need a position for each query and key");
  }

  std::int64_t query_row(std::int64_t b, std::int64_t query, std::int64_t head) const {
    return ((query * micro_batch + b) * heads + head) * width;
  }
  std::int64_t key_row(std::int64_t b, std::int64_t key) const { return (key * micro_batch + b) * width; }
};

/// The keys of a query: its row of `chosen`, up to the first -1.
inline std::span<const std::int32_t> chosen_of(const HostTensor& chosen, std::int64_t b, std::int64_t query) {
  const std::int64_t most = columns_of(chosen.shape);
  const std::int32_t* const row = chosen.i32() + (b * chosen.shape[1] + query) * most;
  std::size_t count = 0;
  while (count < static_cast<std::size_t>(most) && row[count] >= 0) ++count;
  return {row, count};
}

}  // namespace tandem
