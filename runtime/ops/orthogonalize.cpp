#include "runtime/ops/orthogonalize.h"

#include <cmath>
#include <vector>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

using Column = std::vector<double>;

double dot(const Column& a, const Column& b) {
  return sum_of(static_cast<std::int64_t>(a.size()),
                [&](auto i) { return a[static_cast<std::size_t>(i)] * b[static_cast<std::size_t>(i)]; });
}

/// Takes out of `column` what lies in the direction of the others, and returns its length then.
double take_out(const std::vector<Column>& others, Column& column) {
  for (int time = 0; time < 2; ++time) {
    for (const Column& other : others) {
      const double along = dot(other, column);
      for (std::size_t i = 0; i < column.size(); ++i) column[i] -= along * other[i];
    }
  }
  return std::sqrt(dot(column, column));
}

void expect_tall(const Shape& p) {
  expect_shapes(p.rank == 2 && p[0] >= p[1], "orthogonalize takes a matrix of no more columns than rows");
}

}  // namespace

OpCost orthogonalize_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [p] = unpack<1>(operands, "orthogonalize");
  expect_tall(p.shape);
  const std::int64_t rows = p.shape[0], rank = p.shape[1];
  return memory_cost(rows * (2 * rank + 5 * rank * (rank - 1)) * size_of(p.dtype));
}

void orthogonalize_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [p] = unpack<1>(operands, "orthogonalize");
  expect_tall(p.shape);
  const std::int64_t rows = p.shape[0], rank = p.shape[1];
  std::vector<Column> columns;
  for (std::int64_t c = 0; c < rank; ++c) {
    Column column(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row) column[static_cast<std::size_t>(row)] = p.f32()[row * rank + c];
    const double before = std::sqrt(dot(column, column));
    double length = take_out(columns, column);
    if (!(length > dependent_share * before)) {
      for (std::int64_t row = 0; row < rows; ++row) column[static_cast<std::size_t>(row)] = orthogonal_filler(row, c);
      length = take_out(columns, column);
    }
    for (double& element : column) element /= length;
    for (std::int64_t row = 0; row < rows; ++row)
      p.f32()[row * rank + c] = static_cast<float>(column[static_cast<std::size_t>(row)]);
    columns.push_back(std::move(column));
  }
}

}  // namespace tandem
