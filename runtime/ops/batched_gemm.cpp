#include "runtime/ops/batched_gemm.h"

#include "runtime/ops/host_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// What the three forms have in common: H query heads [s,b,H,d], K key heads [t,b,K,d], scores [b,H,s,t].
struct Sizes {
  std::int64_t queries = 0, keys = 0, batch = 0, heads = 0, kv_heads = 0, dim = 0;

  Sizes(const Shape& of_queries, const Shape& of_keys, const Shape& scores)
      : queries(of_queries[0]),
        keys(of_keys[0]),
        batch(of_queries[1]),
        heads(of_queries[2]),
        kv_heads(of_keys[2]),
        dim(of_queries[3]) {
    expect_shapes(kv_heads > 0 && heads % kv_heads == 0, "batched_gemm needs query heads that are a multiple of the key heads");
    expect_shapes(of_keys == Shape(keys, batch, kv_heads, dim), "batched_gemm needs [s,b,H,d] and [t,b,K,d]");
    expect_shapes(scores == Shape(batch, heads, queries, keys), "batched_gemm needs scores [b,H,s,t]");
  }

  MatrixSlice of_query(std::int64_t b, std::int64_t head) const { return {(b * heads + head) * dim, batch * heads * dim}; }
  MatrixSlice of_key(std::int64_t b, std::int64_t head) const { return {(b * kv_heads + head) * dim, batch * kv_heads * dim}; }
  MatrixSlice of_scores(std::int64_t b, std::int64_t head) const { return {(b * heads + head) * queries * keys, keys}; }
};

Sizes sizes_of(const Shape& a, const Shape& b, const Shape& c, const BatchedGemmAttributes& attributes) {
  expect_shapes(!(attributes.transpose_a && attributes.transpose_b), "batched_gemm transposes one operand at most");
  if (attributes.transpose_b) return {a, b, c};
  return attributes.transpose_a ? Sizes(b, c, a) : Sizes(c, b, a);
}

MatrixSlice transposed(MatrixSlice slice) {
  slice.transposed = true;
  return slice;
}

}  // namespace

BatchedGemmSize batched_gemm_size(const Shape& a, const Shape& b, const Shape& c, const BatchedGemmAttributes& attributes) {
  const Sizes n = sizes_of(a, b, c, attributes);
  const std::int64_t count = n.batch * n.heads;
  if (attributes.transpose_b) return {{n.queries, n.keys, n.dim}, count};
  return {attributes.transpose_a ? GemmSize{n.keys, n.dim, n.queries} : GemmSize{n.queries, n.dim, n.keys}, count};
}

BatchedProducts batched_products(const Shape& a, const Shape& b, const Shape& c, const BatchedGemmAttributes& attributes) {
  const Sizes n = sizes_of(a, b, c, attributes);
  const GemmSize size = batched_gemm_size(a, b, c, attributes).size;
  const std::int64_t group = n.heads / n.kv_heads;
  BatchedProducts products{.turns = ProductTurns(static_cast<std::size_t>(group)), .turns_add = attributes.transpose_a};
  for (std::int64_t turn = 0; turn < group; ++turn) {
    for (std::int64_t element = 0; element < n.batch; ++element) {
      for (std::int64_t kv_head = 0; kv_head < n.kv_heads; ++kv_head) {
        const std::int64_t head = kv_head * group + turn;
        const MatrixSlice query = n.of_query(element, head), key = n.of_key(element, kv_head),
                          scores = n.of_scores(element, head);
        auto& of_turn = products.turns[static_cast<std::size_t>(turn)];
        if (attributes.transpose_b) {
          of_turn.push_back({size, query, transposed(key), scores});
        } else if (attributes.transpose_a) {
          of_turn.push_back({size, transposed(scores), query, key});
        } else {
          of_turn.push_back({size, scores, key, query});
        }
      }
    }
  }
  return products;
}

OpCost batched_gemm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [a, b, c] = unpack<3>(operands, "batched_gemm");
  const auto [size, count] = batched_gemm_size(a.shape, b.shape, c.shape, std::get<BatchedGemmAttributes>(any));
  return {.flops = 2.0 * static_cast<double>(count * size.m) * static_cast<double>(size.n) * static_cast<double>(size.k),
          .math = a.dtype,
          .bytes = bytes_of(a, b, c)};
}

void batched_gemm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<BatchedGemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "batched_gemm");
  const BatchedProducts products = batched_products(a.shape, b.shape, c.shape, attributes);
  const auto matrix = [](const HostTensor& tensor, const MatrixSlice& slice) {
    return HostMatrix{tensor.f32() + slice.offset, slice.stride, slice.transposed};
  };
  bool adds = false;
  for (const std::vector<MatrixProduct>& turn : products.turns) {
    for (const MatrixProduct& product : turn)
      host_gemm(product.size, matrix(a, product.a), matrix(b, product.b), matrix(c, product.c), attributes.factor, adds);
    adds = products.turns_add;
  }
}

}  // namespace tandem
