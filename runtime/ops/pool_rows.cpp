#include "runtime/ops/pool_rows.h"

#include "runtime/ops/operands.h"

namespace tandem {

std::int64_t rows_of_mean(const Shape& x, const Shape& y) {
  expect_shapes(x.rank == 3 && y.rank == 3 && x[1] == y[1] && x[2] == y[2] && y[0] > 0 && x[0] % y[0] == 0,
                "pool_rows has as many rows for each mean, which is as wide");
  return x[0] / y[0];
}

OpCost pool_rows_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, y] = unpack<2>(operands, "pool_rows");
  rows_of_mean(x.shape, y.shape);
  return memory_cost(bytes_of(x, y));
}

void pool_rows_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [x, y] = unpack<2>(operands, "pool_rows");
  const std::int64_t rows = rows_of_mean(x.shape, y.shape), row = y.shape[1] * y.shape[2];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const float* const window = x.f32() + i / row * rows * row + i % row;
    double sum = 0;
    for (std::int64_t j = 0; j < rows; ++j) sum += window[j * row];
    y.f32()[i] = static_cast<float>(sum / static_cast<double>(rows));
  }
}

OpCost pool_rows_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [dy, dx] = unpack<2>(operands, "pool_rows_backward");
  rows_of_mean(dx.shape, dy.shape);
  return memory_cost(bytes_of(dy, dx));
}

void pool_rows_backward_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [dy, dx] = unpack<2>(operands, "pool_rows_backward");
  const std::int64_t rows = rows_of_mean(dx.shape, dy.shape), row = dy.shape[1] * dy.shape[2];
  for (std::int64_t i = 0; i < dx.shape.elements(); ++i)
    dx.f32()[i] = dy.f32()[i / row / rows * row + i % row] / static_cast<float>(rows);
}

}  // namespace tandem
