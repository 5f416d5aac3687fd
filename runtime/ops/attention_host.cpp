#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/ops/attention.h"
#include "runtime/ops/attention_sizes.h"
#include "runtime/ops/host_gemm.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

/// For each query and each key of one head: what lies between the two matrix products.
class ScoreMatrix {
 public:
  ScoreMatrix(std::int64_t queries, std::int64_t keys)
      : queries_(queries), keys_(keys), values_(static_cast<std::size_t>(queries * keys)) {}

  float* row(std::int64_t query) { return values_.data() + query * keys_; }

  /// this = factor * a b^T, for a [queries, depth] and b [keys, depth]
  void multiply(HostMatrix a, HostMatrix b, std::int64_t depth, float factor) {
    b.transposed = true;
    host_gemm({queries_, keys_, depth}, a, b, {values_.data(), keys_}, factor, false);
  }
  /// out [queries, depth] = factor * this b, for b [keys, depth]
  void apply(HostMatrix b, HostMatrix out, std::int64_t depth, float factor) {
    host_gemm({queries_, depth, keys_}, {values_.data(), keys_}, b, out, factor, false);
  }
  /// out [keys, depth] = factor * this^T b, for b [queries, depth]
  void apply_transposed(HostMatrix b, HostMatrix out, std::int64_t depth, float factor, bool accumulate) {
    host_gemm({keys_, depth, queries_}, {values_.data(), keys_, true}, b, out, factor, accumulate);
  }

 private:
  std::int64_t queries_, keys_;
  std::vector<float> values_;
};

class CausalMask {
 public:
  CausalMask(const AttentionAttributes& attributes, std::int64_t keys) : attributes_(attributes), keys_(keys) {}

  /// value(key) for each key that the query sees, `hidden` for the others.
  template <typename Value>
  void fill_row(float* row, std::int64_t query, float hidden, Value value) const {
    for (std::int64_t key = 0; key < keys_; ++key) row[key] = sees(query, key) ? value(key) : hidden;
  }

 private:
  bool sees(std::int64_t query, std::int64_t key) const {
    return !attributes_.causal ||
           attributes_.keys.at(static_cast<std::int32_t>(key)) <= attributes_.queries.at(static_cast<std::int32_t>(query));
  }

  const AttentionAttributes& attributes_;
  std::int64_t keys_;
};

/// Turns masked scores into probabilities; returns the log of the sum of their exponentials.
float softmax_row(float* row, std::int64_t keys) {
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  const float largest = *std::max_element(row, row + keys);
  if (largest == minus_infinity) {
    std::fill_n(row, keys, 0.0F);
    return minus_infinity;
  }
  for (std::int64_t key = 0; key < keys; ++key) row[key] = std::exp(row[key] - largest);
  const double sum = sum_of(keys, [=](auto key) { return double{row[key]}; });
  const auto normaliser = static_cast<float>(1 / sum);
  for (std::int64_t key = 0; key < keys; ++key) row[key] *= normaliser;
  return static_cast<float>(largest + std::log(sum));
}

template <typename PerHead>
void for_each_head(const AttentionSizes& sizes, PerHead per_head) {
  for (std::int64_t b = 0; b < sizes.micro_batch; ++b)
    for (std::int64_t head = 0; head < sizes.heads; ++head) per_head(b, head);
}

}  // namespace

void attention_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse] = unpack<5>(operands, "attention");
  const AttentionSizes sizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes);
  const CausalMask mask(attributes, sizes.keys);
  ScoreMatrix scores(sizes.queries, sizes.keys);

  for_each_head(sizes, [&](std::int64_t b, std::int64_t head) {
    const std::int64_t query_offset = sizes.query_offset(b, head), key_offset = sizes.key_offset(b, head);
    const HostMatrix key{k.f32() + key_offset, sizes.key_stride()}, value{v.f32() + key_offset, sizes.key_stride()};
    scores.multiply({q.f32() + query_offset, sizes.query_stride()}, key, sizes.head_dim, attributes.scale);
    float* log_sum = lse.f32() + (b * sizes.heads + head) * sizes.queries;
    for (std::int64_t query = 0; query < sizes.queries; ++query) {
      float* row = scores.row(query);
      mask.fill_row(row, query, -std::numeric_limits<float>::infinity(), [=](auto j) { return row[j]; });
      log_sum[query] = softmax_row(row, sizes.keys);
    }
    scores.apply(value, {out.f32() + query_offset, sizes.query_stride()}, sizes.head_dim, 1.0F);
  });
}

// With p = exp(scale q k^T - lse) and dp = dout v^T, the gradient of the scores before the mask and the scale is
// ds = p (dp - rowsum(dout * out)); then dq = scale ds k, dk = scale ds^T q, dv = p^T dout (FlashAttention-2, algorithm 2).
void attention_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse, dout, dq, dk, dv] = unpack<9>(operands, "attention_backward");
  const AttentionSizes sizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes);
  const CausalMask mask(attributes, sizes.keys);
  const std::int64_t depth = sizes.head_dim, query_stride = sizes.query_stride(), key_stride = sizes.key_stride();
  ScoreMatrix probabilities(sizes.queries, sizes.keys), score_gradients(sizes.queries, sizes.keys);

  for_each_head(sizes, [&](std::int64_t b, std::int64_t head) {
    const std::int64_t query_offset = sizes.query_offset(b, head), key_offset = sizes.key_offset(b, head);
    const HostMatrix query{q.f32() + query_offset, query_stride}, key{k.f32() + key_offset, key_stride};
    const HostMatrix value{v.f32() + key_offset, key_stride}, out_gradient{dout.f32() + query_offset, query_stride};
    probabilities.multiply(query, key, depth, attributes.scale);
    score_gradients.multiply(out_gradient, value, depth, 1.0F);

    const float* log_sum = lse.f32() + (b * sizes.heads + head) * sizes.queries;
    for (std::int64_t i = 0; i < sizes.queries; ++i) {
      float *p = probabilities.row(i), *ds = score_gradients.row(i);
      mask.fill_row(p, i, 0.0F, [=](auto j) { return std::exp(p[j] - log_sum[i]); });
      const float *o = out.f32() + query_offset + i * query_stride, *d_o = out_gradient.data + i * query_stride;
      const auto row_sum = static_cast<float>(sum_of(depth, [=](auto e) { return double{o[e]} * d_o[e]; }));
      for (std::int64_t j = 0; j < sizes.keys; ++j) ds[j] = p[j] * (ds[j] - row_sum);
    }

    const bool adds_to_group = head % (sizes.heads / sizes.kv_heads) != 0;
    score_gradients.apply(key, {dq.f32() + query_offset, query_stride}, depth, attributes.scale);
    score_gradients.apply_transposed(query, {dk.f32() + key_offset, key_stride}, depth, attributes.scale, adds_to_group);
    probabilities.apply_transposed(out_gradient, {dv.f32() + key_offset, key_stride}, depth, 1.0F, adds_to_group);
  });
}

}  // namespace tandem
