#include "runtime/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void expect_one_per_token(std::int64_t tokens, const Shape& shape) {
  expect_shapes(shape.elements() == tokens, "cross entropy keeps one maximum, sum and target per token");
}

/// The target's place in this rank's part of the vocabulary; -1 if another rank holds it.
std::int64_t local_target(std::int32_t target, std::int64_t vocabulary, const CrossEntropyAttributes& attributes) {
  const std::int64_t local = target - attributes.vocab_start;
  return local >= 0 && local < vocabulary ? local : -1;
}

}  // namespace

OpCost cross_entropy_max_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [logits, max] = unpack<2>(operands, "cross_entropy_max");
  expect_one_per_token(rows_of(logits.shape), max.shape);
  return memory_cost(bytes_of(logits, max));
}

void cross_entropy_max_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [logits, max] = unpack<2>(operands, "cross_entropy_max");
  const std::int64_t tokens = rows_of(logits.shape), vocabulary = columns_of(logits.shape);
  expect_one_per_token(tokens, max.shape);
  for (std::int64_t i = 0; i < tokens; ++i) {
    const float* row = logits.f32() + i * vocabulary;
    max.f32()[i] = *std::max_element(row, row + vocabulary);
  }
}

OpCost cross_entropy_sum_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [logits, max, sum] = unpack<3>(operands, "cross_entropy_sum");
  expect_one_per_token(rows_of(logits.shape), max.shape);
  expect_one_per_token(rows_of(logits.shape), sum.shape);
  return memory_cost(bytes_of(logits, max, sum));
}

void cross_entropy_sum_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [logits, max, sum] = unpack<3>(operands, "cross_entropy_sum");
  const std::int64_t tokens = rows_of(logits.shape), vocabulary = columns_of(logits.shape);
  expect_one_per_token(tokens, max.shape);
  expect_one_per_token(tokens, sum.shape);
  for (std::int64_t i = 0; i < tokens; ++i) {
    const float *row = logits.f32() + i * vocabulary, largest = max.f32()[i];
    sum.f32()[i] = static_cast<float>(sum_of(vocabulary, [=](auto j) { return double{std::exp(row[j] - largest)}; }));
  }
}

OpCost cross_entropy_target_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [logits, targets, target] = unpack<3>(operands, "cross_entropy_target");
  expect_one_per_token(rows_of(logits.shape), targets.shape);
  expect_one_per_token(rows_of(logits.shape), target.shape);
  const Bytes touched_logits = rows_of(logits.shape) * size_of(logits.dtype);
  return memory_cost(touched_logits + bytes_of(targets, target));
}

void cross_entropy_target_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<CrossEntropyAttributes>(any);
  const auto [logits, targets, target] = unpack<3>(operands, "cross_entropy_target");
  const std::int64_t tokens = rows_of(logits.shape), vocabulary = columns_of(logits.shape);
  expect_one_per_token(tokens, targets.shape);
  expect_one_per_token(tokens, target.shape);
  for (std::int64_t i = 0; i < tokens; ++i) {
    const std::int64_t local = local_target(targets.i32()[i], vocabulary, attributes);
    target.f32()[i] = local < 0 ? 0.0F : logits.f32()[i * vocabulary + local];
  }
}

OpCost cross_entropy_loss_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [max, sum, target, loss] = unpack<4>(operands, "cross_entropy_loss");
  expect_one_per_token(max.shape.elements(), sum.shape);
  expect_one_per_token(max.shape.elements(), target.shape);
  return memory_cost(bytes_of(max, sum, target, loss));
}

void cross_entropy_loss_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [max, sum, target, loss] = unpack<4>(operands, "cross_entropy_loss");
  const std::int64_t tokens = max.shape.elements();
  expect_one_per_token(tokens, sum.shape);
  expect_one_per_token(tokens, target.shape);
  const float *maxima = max.f32(), *sums = sum.f32(), *targets = target.f32();
  const double total = sum_of(tokens, [=](auto i) { return std::log(double{sums[i]}) + maxima[i] - targets[i]; });
  *loss.f32() = static_cast<float>(std::get<CrossEntropyAttributes>(any).scale * total);
}

OpCost cross_entropy_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [logits, targets, max, sum, dlogits] = unpack<5>(operands, "cross_entropy_backward");
  for (const Shape& shape : {targets.shape, max.shape, sum.shape}) expect_one_per_token(rows_of(logits.shape), shape);
  expect_shapes(dlogits.shape == logits.shape, "cross entropy's gradient is shaped as the logits");
  return memory_cost(bytes_of(logits, targets, max, sum, dlogits));
}

void cross_entropy_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<CrossEntropyAttributes>(any);
  const auto [logits, targets, max, sum, dlogits] = unpack<5>(operands, "cross_entropy_backward");
  const std::int64_t tokens = rows_of(logits.shape), vocabulary = columns_of(logits.shape);
  for (const Shape& shape : {targets.shape, max.shape, sum.shape}) expect_one_per_token(tokens, shape);
  expect_shapes(dlogits.shape == logits.shape, "cross entropy's gradient is shaped as the logits");
  for (std::int64_t i = 0; i < tokens; ++i) {
    const float* row = logits.f32() + i * vocabulary;
    float* gradient = dlogits.f32() + i * vocabulary;
    const float largest = max.f32()[i], factor = attributes.scale / sum.f32()[i];
    for (std::int64_t j = 0; j < vocabulary; ++j) gradient[j] = factor * std::exp(row[j] - largest);
    const std::int64_t local = local_target(targets.i32()[i], vocabulary, attributes);
    if (local >= 0) gradient[local] -= attributes.scale;
  }
}

}  // namespace tandem
