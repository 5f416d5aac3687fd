#include "runtime/ops/softmax.h"

#include <cmath>
#include <limits>

#include "runtime/ops/key_mask.h"
#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void check_scores(const Shape& scores, const AttentionAttributes& attributes) {
  expect_shapes(scores.rank == 4, "softmax takes scores [b,H,s,t]");
  expect_shapes((!attributes.causal && attributes.documents.starts.empty()) ||
                    (attributes.queries.count() == scores[2] && attributes.keys.count() == scores[3]),
                "softmax that is causal, or of documents, needs a position for each query and key");
}

}  // namespace

std::int64_t visible_pairs(const Shape& scores, const AttentionAttributes& attributes) {
  check_scores(scores, attributes);
  return seen_pairs_of_batch(attributes, scores[2], scores[3], scores[0]);
}

OpCost softmax_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [scores, p] = unpack<2>(operands, "softmax");
  expect_shapes(p.shape == scores.shape, "softmax's probabilities are shaped as the scores");
  const std::int64_t seen = scores.shape[1] * visible_pairs(scores.shape, std::get<AttentionAttributes>(any));
  return memory_cost(seen * size_of(scores.dtype) + p.bytes());
}

void softmax_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [scores, p] = unpack<2>(operands, "softmax");
  expect_shapes(p.shape == scores.shape, "softmax's probabilities are shaped as the scores");
  check_scores(scores.shape, attributes);
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  const std::int64_t queries = scores.shape[2], keys = scores.shape[3];
  const KeyMask mask(attributes, queries, keys, scores.shape[0]);
  for (std::int64_t row = 0; row < rows_of(scores.shape); ++row) {
    const float* from = scores.f32() + row * keys;
    float* to = p.f32() + row * keys;
    const auto sees = [&](std::int64_t key) { return mask.sees(row / queries / scores.shape[1], row % queries, key); };
    float largest = minus_infinity;
    for (std::int64_t key = 0; key < keys; ++key)
      if (sees(key)) largest = std::max(largest, from[key]);
    for (std::int64_t key = 0; key < keys; ++key) to[key] = sees(key) ? std::exp(from[key] - largest) : 0.0F;
    const double sum = sum_of(keys, [=](auto key) { return double{to[key]}; });
    const auto normaliser = sum > 0 ? static_cast<float>(1 / sum) : 0.0F;
    for (std::int64_t key = 0; key < keys; ++key) to[key] *= normaliser;
  }
}

OpCost softmax_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [p, dp, ds] = unpack<3>(operands, "softmax_backward");
  expect_shapes(dp.shape == p.shape && ds.shape == p.shape, "softmax's gradients are shaped as the probabilities");
  return memory_cost(bytes_of(p, dp, ds));
}

void softmax_backward_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [p, dp, ds] = unpack<3>(operands, "softmax_backward");
  expect_shapes(dp.shape == p.shape && ds.shape == p.shape, "softmax's gradients are shaped as the probabilities");
  const std::int64_t keys = columns_of(p.shape);
  for (std::int64_t row = 0; row < rows_of(p.shape); ++row) {
    const float *probability = p.f32() + row * keys, *gradient = dp.f32() + row * keys;
    float* to = ds.f32() + row * keys;
    const auto mean = static_cast<float>(sum_of(keys, [=](auto key) { return double{probability[key]} * gradient[key]; }));
    for (std::int64_t key = 0; key < keys; ++key) to[key] = probability[key] * (gradient[key] - mean);
  }
}

}  // namespace tandem
