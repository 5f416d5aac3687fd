#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/ops/attention.h"
#include "runtime/ops/attention_sizes.h"
#include "runtime/ops/host_gemm.h"
#include "runtime/ops/key_mask.h"
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

/// A score under a soft cap.
float capped(float score, float cap) { return cap > 0 ? cap * std::tanh(score / cap) : score; }
/// The derivative of that, where `score` is capped.
float capped_derivative(float score, float cap) { return cap > 0 ? 1 - score * score / (cap * cap) : 1.0F; }

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

HostMatrix matrix(const HostTensor& tensor, AttentionSizes::Slice slice) { return {tensor.f32() + slice.offset, slice.stride}; }

}  // namespace

void attention_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse] = unpack<5>(operands, "attention");
  const AttentionSizes sizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes);
  const KeyMask mask(attributes, sizes.queries, sizes.keys, sizes.micro_batch);
  ScoreMatrix scores(sizes.queries, sizes.keys);

  for_each_head(sizes, [&](std::int64_t b, std::int64_t head) {
    scores.multiply(matrix(q, sizes.query(b, head)), matrix(k, sizes.key(b, head)), sizes.head_dim, attributes.scale);
    float* log_sum = lse.f32() + (b * sizes.heads + head) * sizes.queries;
    for (std::int64_t query = 0; query < sizes.queries; ++query) {
      float* row = scores.row(query);
      mask.fill_row(row, b, query, -std::numeric_limits<float>::infinity(),
                    [=](auto j) { return capped(row[j], attributes.softcap); });
      log_sum[query] = softmax_row(row, sizes.keys);
    }
    scores.apply(matrix(v, sizes.value(b, head)), matrix(out, sizes.output(b, head)), sizes.value_dim, 1.0F);
  });
}

// With p = exp(scale q k^T - lse) and dp = dout v^T, the gradient of the scores before the mask and the scale is
// ds = p (dp - rowsum(dout * out)), times the slope of a soft cap; then dq = scale ds k, dk = scale ds^T q, dv = p^T dout
// (FlashAttention-2, algorithm 2).
void attention_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse, dout, dq, dk, dv] = unpack<9>(operands, "attention_backward");
  const AttentionSizes sizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes);
  const KeyMask mask(attributes, sizes.queries, sizes.keys, sizes.micro_batch);
  ScoreMatrix probabilities(sizes.queries, sizes.keys), score_gradients(sizes.queries, sizes.keys);
  std::vector<float> slope(static_cast<std::size_t>(sizes.keys));  // of a query's capped scores

  for_each_head(sizes, [&](std::int64_t b, std::int64_t head) {
    const HostMatrix query = matrix(q, sizes.query(b, head)), key = matrix(k, sizes.key(b, head));
    const HostMatrix output = matrix(out, sizes.output(b, head)), output_gradient = matrix(dout, sizes.output(b, head));
    probabilities.multiply(query, key, sizes.head_dim, attributes.scale);  // scores, until they become probabilities
    score_gradients.multiply(output_gradient, matrix(v, sizes.value(b, head)), sizes.value_dim, 1.0F);

    const float* log_sum = lse.f32() + (b * sizes.heads + head) * sizes.queries;
    for (std::int64_t i = 0; i < sizes.queries; ++i) {
      float *p = probabilities.row(i), *ds = score_gradients.row(i);
      for (std::int64_t j = 0; j < sizes.keys; ++j) {
        p[j] = capped(p[j], attributes.softcap);
        slope[static_cast<std::size_t>(j)] = capped_derivative(p[j], attributes.softcap);
      }
      mask.fill_row(p, b, i, 0.0F, [=](auto j) { return std::exp(p[j] - log_sum[i]); });
      const float *o = output.data + i * output.stride, *d_o = output_gradient.data + i * output.stride;
      const auto row_sum = static_cast<float>(sum_of(sizes.value_dim, [=](auto e) { return double{o[e]} * d_o[e]; }));
      for (std::int64_t j = 0; j < sizes.keys; ++j) ds[j] = p[j] * (ds[j] - row_sum) * slope[static_cast<std::size_t>(j)];
    }

    const bool adds_to_group = head % (sizes.heads / sizes.kv_heads) != 0;
    score_gradients.apply(key, matrix(dq, sizes.query(b, head)), sizes.head_dim, attributes.scale);
    score_gradients.apply_transposed(query, matrix(dk, sizes.key(b, head)), sizes.head_dim, attributes.scale, adds_to_group);
    probabilities.apply_transposed(output_gradient, matrix(dv, sizes.value(b, head)), sizes.value_dim, 1.0F, adds_to_group);
  });
}

}  // namespace tandem
