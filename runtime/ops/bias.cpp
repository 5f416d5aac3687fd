#include "runtime/ops/bias.h"

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

void expect_bias_of(const Shape& bias, const Shape& rows) {
  expect_shapes(bias.elements() == columns_of(rows), "a bias has an element for each column");
}

}  // namespace

OpCost add_bias_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [bias, x] = unpack<2>(operands, "add_bias");
  expect_bias_of(bias.shape, x.shape);
  return memory_cost(bytes_of(bias, x, x));
}

void add_bias_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [bias, x] = unpack<2>(operands, "add_bias");
  expect_bias_of(bias.shape, x.shape);
  const std::int64_t columns = columns_of(x.shape);
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) x.f32()[i] += bias.f32()[i % columns];
}

OpCost bias_gradient_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [dy, dbias] = unpack<2>(operands, "bias_gradient");
  expect_bias_of(dbias.shape, dy.shape);
  return memory_cost(bytes_of(dy, dbias, dbias));
}

void bias_gradient_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [dy, dbias] = unpack<2>(operands, "bias_gradient");
  expect_bias_of(dbias.shape, dy.shape);
  const std::int64_t columns = columns_of(dy.shape), rows = rows_of(dy.shape);
  for (std::int64_t column = 0; column < columns; ++column) {
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) sum += dy.f32()[row * columns + column];
    dbias.f32()[column] += static_cast<float>(sum);
  }
}

}  // namespace tandem
