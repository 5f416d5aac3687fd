#include "runtime/ops/sigmoid_gate.h"

#include <cmath>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void expect_gate_shapes(const Shape& x, const Shape& z, const Shape& y) {
  expect_shapes(x == y && rows_of(z) == rows_of(x) && columns_of(x) % columns_of(z) == 0,
                "a gate [s,b,g] belongs to [s,b,f], and g divides f");
}

float open_share(float z) { return 1 / (1 + std::exp(-z)); }

}  // namespace

OpCost sigmoid_gate_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, z, y] = unpack<3>(operands, "sigmoid_gate");
  expect_gate_shapes(x.shape, z.shape, y.shape);
  return memory_cost(bytes_of(x, z, y));
}

void sigmoid_gate_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [x, z, y] = unpack<3>(operands, "sigmoid_gate");
  expect_gate_shapes(x.shape, z.shape, y.shape);
  const std::int64_t neighbours = columns_of(x.shape) / columns_of(z.shape);
  for (std::int64_t i = 0; i < z.shape.elements(); ++i) {
    const float open = open_share(z.f32()[i]);
    for (std::int64_t at = i * neighbours; at < (i + 1) * neighbours; ++at) y.f32()[at] = x.f32()[at] * open;
  }
}

OpCost sigmoid_gate_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, z, dy, dx, dz] = unpack<5>(operands, "sigmoid_gate_backward");
  expect_gate_shapes(x.shape, z.shape, dy.shape);
  expect_shapes(dx.shape == x.shape && dz.shape == z.shape, "a gate's gradients are shaped as its inputs");
  return memory_cost(bytes_of(x, z, dy, dx, dz));
}

void sigmoid_gate_backward_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [x, z, dy, dx, dz] = unpack<5>(operands, "sigmoid_gate_backward");
  expect_gate_shapes(x.shape, z.shape, dy.shape);
  const std::int64_t neighbours = columns_of(x.shape) / columns_of(z.shape);
  const float *in = x.f32(), *gradient = dy.f32();
  for (std::int64_t i = 0; i < z.shape.elements(); ++i) {
    const float open = open_share(z.f32()[i]);
    const std::int64_t first = i * neighbours;
    const double sum = sum_of(neighbours, [=](auto j) { return double{gradient[first + j]} * in[first + j]; });
    for (std::int64_t at = first; at < first + neighbours; ++at) dx.f32()[at] = dy.f32()[at] * open;
    dz.f32()[i] = static_cast<float>(sum * open * (1 - open));
  }
}

}  // namespace tandem
