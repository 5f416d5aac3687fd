#include "runtime/ops/split_norm.h"

#include <cmath>
#include <vector>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void expect_row_sums(const Shape& sums, const Shape& x) {
  expect_shapes(sums.elements() == rows_of(x), "split_norm has one sum for each row");
}

void expect_norm_operands(const Shape& x, const Shape& squares, const Shape& weight, const Shape& gate, const Shape& y) {
  expect_row_sums(squares, x);
  expect_shapes(x == y && x == gate && weight.elements() == columns_of(x),
                "split_norm's input, gate and output are alike, and its weight is a row");
}

struct SplitRows {
  std::int64_t rows, columns;
  double width, epsilon;

  SplitRows(const Shape& x, const OpAttributes& any)
      : rows(rows_of(x)),
        columns(columns_of(x)),
        width(static_cast<double>(std::get<SplitNormAttributes>(any).width)),
        epsilon(std::get<SplitNormAttributes>(any).epsilon) {}
  double inverse_deviation(float squares) const { return 1 / std::sqrt(squares / width + epsilon); }
};

double split_sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

}  // namespace

OpCost split_norm_squares_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, squares] = unpack<2>(operands, "split_norm_squares");
  expect_row_sums(squares.shape, x.shape);
  return memory_cost(bytes_of(x, squares));
}

void split_norm_squares_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [x, squares] = unpack<2>(operands, "split_norm_squares");
  const std::int64_t columns = columns_of(x.shape);
  for (std::int64_t row = 0; row < rows_of(x.shape); ++row) {
    const float* const in = x.f32() + row * columns;
    squares.f32()[row] = static_cast<float>(sum_of(columns, [=](auto i) { return double{in[i]} * in[i]; }));
  }
}

OpCost split_norm_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, squares, weight, gate, y] = unpack<5>(operands, "split_norm");
  expect_norm_operands(x.shape, squares.shape, weight.shape, gate.shape, y.shape);
  return memory_cost(bytes_of(x, squares, weight, gate, y));
}

void split_norm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, squares, weight, gate, y] = unpack<5>(operands, "split_norm");
  const SplitRows n(x.shape, any);
  for (std::int64_t row = 0; row < n.rows; ++row) {
    const double inverse = n.inverse_deviation(squares.f32()[row]);
    for (std::int64_t i = 0; i < n.columns; ++i) {
      const std::int64_t at = row * n.columns + i;
      y.f32()[at] = static_cast<float>(weight.f32()[i] * (x.f32()[at] * inverse) * split_sigmoid(gate.f32()[at]));
    }
  }
}

OpCost split_norm_products_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, squares, weight, gate, dy, products] = unpack<6>(operands, "split_norm_products");
  expect_norm_operands(x.shape, squares.shape, weight.shape, gate.shape, dy.shape);
  expect_row_sums(products.shape, x.shape);
  return memory_cost(bytes_of(x, squares, weight, gate, dy, products));
}

void split_norm_products_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, squares, weight, gate, dy, products] = unpack<6>(operands, "split_norm_products");
  const SplitRows n(x.shape, any);
  const float *in = x.f32(), *w = weight.f32(), *z = gate.f32(), *gradient = dy.f32();
  for (std::int64_t row = 0; row < n.rows; ++row) {
    const double inverse = n.inverse_deviation(squares.f32()[row]);
    const std::int64_t first = row * n.columns;
    products.f32()[row] = static_cast<float>(sum_of(n.columns, [=](auto i) {
      const std::int64_t at = first + static_cast<std::int64_t>(i);
      return w[i] * split_sigmoid(z[at]) * gradient[at] * (in[at] * inverse);
    }));
  }
}

OpCost split_norm_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, squares, weight, gate, dy, products, dx, dgate, dweight] = unpack<9>(operands, "split_norm_backward");
  expect_norm_operands(x.shape, squares.shape, weight.shape, gate.shape, dy.shape);
  expect_row_sums(products.shape, x.shape);
  expect_shapes(dx.shape == x.shape && dgate.shape == gate.shape && dweight.shape == weight.shape,
                "split_norm's gradients are shaped as what they belong to");
  return memory_cost(bytes_of(x, squares, weight, gate, dy, products, dx, dgate) + 2 * dweight.bytes());
}

void split_norm_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, squares, weight, gate, dy, products, dx, dgate, dweight] = unpack<9>(operands, "split_norm_backward");
  const SplitRows n(x.shape, any);
  std::vector<double> sums(static_cast<std::size_t>(n.columns));
  for (std::int64_t row = 0; row < n.rows; ++row) {
    const double inverse = n.inverse_deviation(squares.f32()[row]), mean = products.f32()[row] / n.width;
    for (std::int64_t i = 0; i < n.columns; ++i) {
      const std::int64_t at = row * n.columns + i;
      const double normalised = x.f32()[at] * inverse, open = split_sigmoid(gate.f32()[at]), gradient = dy.f32()[at];
      const double w = weight.f32()[i];
      dx.f32()[at] = static_cast<float>(inverse * (w * open * gradient - normalised * mean));
      dgate.f32()[at] = static_cast<float>(gradient * w * normalised * open * (1 - open));
      sums[static_cast<std::size_t>(i)] += gradient * normalised * open;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) dweight.f32()[i] += static_cast<float>(sums[i]);
}

}  // namespace tandem
