#include "runtime/ops/elementwise.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void expect_equal_lengths(const Shape& a, const Shape& b) {
  expect_shapes(a.elements() == b.elements(), "elementwise operands have equally many elements");
}

}  // namespace

OpCost add_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [a, b, c] = unpack<3>(operands, "add");
  expect_equal_lengths(a.shape, c.shape);
  expect_equal_lengths(b.shape, c.shape);
  return memory_cost(bytes_of(a, b, c));
}

void add_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [a, b, c] = unpack<3>(operands, "add");
  expect_equal_lengths(a.shape, c.shape);
  expect_equal_lengths(b.shape, c.shape);
  const float *first = a.f32(), *second = b.f32();
  std::transform(first, first + a.shape.elements(), second, c.f32(), [](float x, float y) { return x + y; });
}

OpCost weighted_sum_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [a, b, c] = unpack<3>(operands, "weighted_sum");
  expect_equal_lengths(a.shape, c.shape);
  expect_equal_lengths(b.shape, c.shape);
  return memory_cost(bytes_of(a, b, c));
}

void weighted_sum_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [a, b, c] = unpack<3>(operands, "weighted_sum");
  const auto& factors = std::get<WeightedSumAttributes>(any);
  const float *first = a.f32(), *second = b.f32();
  std::transform(first, first + a.shape.elements(), second, c.f32(),
                 [&](float x, float y) { return factors.first * x + factors.second * y; });
}

OpCost fill_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x] = unpack<1>(operands, "fill");
  return memory_cost(bytes_of(x));
}

void fill_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x] = unpack<1>(operands, "fill");
  std::fill_n(x.f32(), x.shape.elements(), std::get<ScaleAttributes>(any).factor);
}

OpCost scale_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, y] = unpack<2>(operands, "scale");
  expect_equal_lengths(x.shape, y.shape);
  return memory_cost(bytes_of(x, y));
}

void scale_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "scale");
  expect_equal_lengths(x.shape, y.shape);
  const float factor = std::get<ScaleAttributes>(any).factor;
  std::transform(x.f32(), x.f32() + x.shape.elements(), y.f32(), [=](float value) { return factor * value; });
}

OpCost square_sum_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, out] = unpack<2>(operands, "square_sum");
  expect_equal_lengths(out.shape, Shape(1));
  return memory_cost(bytes_of(x) + 2 * out.bytes());
}

void square_sum_host(std::span<const HostTensor> operands, const OpAttributes& attributes) {
  const auto [x, out] = unpack<2>(operands, "square_sum");
  expect_equal_lengths(out.shape, Shape(1));
  const double factor = std::get<ScaleAttributes>(attributes).factor;
  const float* values = x.f32();
  *out.f32() += static_cast<float>(factor * sum_of(x.shape.elements(), [=](auto i) { return double{values[i]} * values[i]; }));
}

OpCost softcap_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x] = unpack<1>(operands, "softcap");
  return memory_cost(2 * x.bytes());
}

void softcap_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x] = unpack<1>(operands, "softcap");
  const float cap = std::get<ScaleAttributes>(any).factor;
  std::transform(x.f32(), x.f32() + x.shape.elements(), x.f32(), [=](float value) { return cap * std::tanh(value / cap); });
}

OpCost softcap_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [y, dy] = unpack<2>(operands, "softcap_backward");
  expect_equal_lengths(y.shape, dy.shape);
  return memory_cost(y.bytes() + 2 * dy.bytes());
}

void softcap_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [y, dy] = unpack<2>(operands, "softcap_backward");
  expect_equal_lengths(y.shape, dy.shape);
  const float cap = std::get<ScaleAttributes>(any).factor;
  const auto slope = [=](float capped) { return 1 - capped / cap * (capped / cap); };
  std::transform(y.f32(), y.f32() + y.shape.elements(), dy.f32(), dy.f32(),
                 [=](float capped, float gradient) { return slope(capped) * gradient; });
}

}  // namespace tandem
