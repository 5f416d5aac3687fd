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

/// What the operations read, and behind it what they write; `gate` is missing where there is none.
template <typename Operand>
struct NormOperands {
  Operand x, squares, weight;
  const Operand* gate;
  std::vector<Operand> rest;

  NormOperands(std::span<const Operand> operands, const OpAttributes& any, std::size_t others)
      : gate(std::get<SplitNormAttributes>(any).gated && operands.size() > 3 ? &operands[3] : nullptr) {
    const std::size_t first = gate == nullptr ? 3 : 4;
    expect_shapes(operands.size() == first + others, "split_norm has a gate or says that it has none");
    x = operands[0];
    squares = operands[1];
    weight = operands[2];
    rest.assign(operands.begin() + static_cast<std::ptrdiff_t>(first), operands.end());
    expect_row_sums(squares.shape, x.shape);
    expect_shapes(
        x.shape == rest[0].shape && (gate == nullptr || x.shape == gate->shape) && weight.shape.elements() == columns_of(x.shape),
        "split_norm's input, gate and output are alike, and its weight is a row");
  }
};

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

double split_sigmoid(const float* z, std::int64_t at) { return z == nullptr ? 1 : 1 / (1 + std::exp(-double{z[at]})); }

const float* gate_values(const NormOperands<HostTensor>& operands) {
  return operands.gate == nullptr ? nullptr : operands.gate->f32();
}

Bytes bytes_of_inputs(const NormOperands<OperandType>& operands) {
  const Bytes of_gate = operands.gate == nullptr ? 0 : operands.gate->bytes();
  return bytes_of(operands.x, operands.squares, operands.weight) + of_gate;
}

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

OpCost split_norm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const NormOperands<OperandType> of(operands, any, 1);
  return memory_cost(bytes_of_inputs(of) + of.rest[0].bytes());
}

void split_norm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const NormOperands<HostTensor> of(operands, any, 1);
  const SplitRows n(of.x.shape, any);
  const float* const gates = gate_values(of);
  for (std::int64_t row = 0; row < n.rows; ++row) {
    const double inverse = n.inverse_deviation(of.squares.f32()[row]);
    for (std::int64_t i = 0; i < n.columns; ++i) {
      const std::int64_t at = row * n.columns + i;
      of.rest[0].f32()[at] = static_cast<float>(of.weight.f32()[i] * (of.x.f32()[at] * inverse) * split_sigmoid(gates, at));
    }
  }
}

OpCost split_norm_products_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const NormOperands<OperandType> of(operands, any, 2);
  expect_row_sums(of.rest[1].shape, of.x.shape);
  return memory_cost(bytes_of_inputs(of) + bytes_of(of.rest[0], of.rest[1]));
}

void split_norm_products_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const NormOperands<HostTensor> of(operands, any, 2);
  const SplitRows n(of.x.shape, any);
  const float *in = of.x.f32(), *w = of.weight.f32(), *gates = gate_values(of), *gradient = of.rest[0].f32();
  for (std::int64_t row = 0; row < n.rows; ++row) {
    const double inverse = n.inverse_deviation(of.squares.f32()[row]);
    const std::int64_t first = row * n.columns;
    of.rest[1].f32()[row] = static_cast<float>(sum_of(n.columns, [=](auto i) {
      const std::int64_t at = first + static_cast<std::int64_t>(i);
      return w[i] * split_sigmoid(gates, at) * gradient[at] * (in[at] * inverse);
    }));
  }
}

OpCost split_norm_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const bool gated = std::get<SplitNormAttributes>(any).gated;
  const NormOperands<OperandType> of(operands, any, gated ? 5 : 4);
  const OperandType &dy = of.rest[0], &products = of.rest[1], &dx = of.rest[2], &dweight = of.rest.back();
  expect_row_sums(products.shape, of.x.shape);
  expect_shapes(dx.shape == of.x.shape && dweight.shape == of.weight.shape && (!gated || of.rest[3].shape == of.x.shape),
                "split_norm's gradients are shaped as what they belong to");
  return memory_cost(bytes_of_inputs(of) + bytes_of(dy, products, dx) + (gated ? of.rest[3].bytes() : 0) + 2 * dweight.bytes());
}

void split_norm_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const bool gated = std::get<SplitNormAttributes>(any).gated;
  const NormOperands<HostTensor> of(operands, any, gated ? 5 : 4);
  const HostTensor &dy = of.rest[0], &products = of.rest[1], &dx = of.rest[2], &dweight = of.rest.back();
  const SplitRows n(of.x.shape, any);
  const float* const gates = gate_values(of);
  std::vector<double> sums(static_cast<std::size_t>(n.columns));
  for (std::int64_t row = 0; row < n.rows; ++row) {
    const double inverse = n.inverse_deviation(of.squares.f32()[row]), mean = products.f32()[row] / n.width;
    for (std::int64_t i = 0; i < n.columns; ++i) {
      const std::int64_t at = row * n.columns + i;
      const double normalised = of.x.f32()[at] * inverse, open = split_sigmoid(gates, at), gradient = dy.f32()[at];
      const double w = of.weight.f32()[i];
      dx.f32()[at] = static_cast<float>(inverse * (w * open * gradient - normalised * mean));
      if (gated) of.rest[3].f32()[at] = static_cast<float>(gradient * w * normalised * open * (1 - open));
      sums[static_cast<std::size_t>(i)] += gradient * normalised * open;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) dweight.f32()[i] += static_cast<float>(sums[i]);
}

}  // namespace tandem
