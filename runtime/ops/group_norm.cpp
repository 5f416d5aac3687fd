#include "runtime/ops/group_norm.h"

#include <cmath>
#include <vector>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

/// Rows of parts: [rows * groups][width].
struct GroupedRows {
  std::int64_t rows, groups, width, weight_groups;

  GroupedRows(const Shape& x, const Shape& weight, const Shape& y, const GroupNormAttributes& attributes)
      : rows(rows_of(x)), groups(attributes.groups), width(columns_of(x) / attributes.groups), weight_groups(1) {
    expect_shapes(x == y && columns_of(x) % groups == 0, "group_norm's input and output are alike, and made of whole groups");
    expect_shapes(weight.elements() == width || weight.elements() == width * groups,
                  "group_norm's weight is as wide as a row or as a group");
    weight_groups = weight.elements() / width;
  }
  /// Where the gate of a part begins in a tensor of so many columns.
  std::int64_t gate_at(std::int64_t part, std::int64_t columns, std::int64_t gate_column) const {
    return part / groups * columns + gate_column + part % groups * width;
  }
  /// Where the weight of a part begins.
  std::int64_t weight_at(std::int64_t part) const { return part % weight_groups * width; }
};

double inverse_deviation_of(const float* x, std::int64_t width, float epsilon) {
  const double squares = sum_of(width, [=](auto i) { return double{x[i]} * x[i]; });
  return 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
}

void expect_gate(const Shape& gate, const Shape& x, const GroupNormAttributes& attributes) {
  expect_shapes(rows_of(gate) == rows_of(x) && attributes.gate_column + columns_of(x) <= columns_of(gate),
                "a gate has a column for each of what it opens");
}

double sigmoid_of(double z) { return 1 / (1 + std::exp(-z)); }

template <typename Operand>
bool is_gated(std::span<const Operand> operands, std::size_t without) {
  return operands.size() > without;
}

}  // namespace

OpCost group_norm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GroupNormAttributes>(any);
  const bool gated = is_gated(operands, 3);
  expect_shapes(operands.size() == (gated ? 4U : 3U), "group_norm takes 3 operands, or 4 with a gate");
  const OperandType &x = operands[0], &weight = operands[1], &y = operands.back();
  GroupedRows(x.shape, weight.shape, y.shape, attributes);
  if (gated) expect_gate(operands[2].shape, x.shape, attributes);
  return memory_cost(bytes_of(x, weight, y) + (gated ? x.bytes() : 0));
}

void group_norm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GroupNormAttributes>(any);
  const bool gated = is_gated(operands, 3);
  const HostTensor &x = operands[0], &weight = operands[1], &y = operands.back();
  const GroupedRows n(x.shape, weight.shape, y.shape, attributes);
  for (std::int64_t part = 0; part < n.rows * n.groups; ++part) {
    const float *in = x.f32() + part * n.width, *w = weight.f32() + n.weight_at(part);
    const float* gate = nullptr;
    if (gated) gate = operands[2].f32() + n.gate_at(part, columns_of(operands[2].shape), attributes.gate_column);
    const double inverse = inverse_deviation_of(in, n.width, attributes.epsilon);
    for (std::int64_t i = 0; i < n.width; ++i) {
      const double opened = gated ? gate[i] * sigmoid_of(gate[i]) : 1.0;
      y.f32()[part * n.width + i] = static_cast<float>(w[i] * in[i] * inverse * opened);
    }
  }
}

OpCost group_norm_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const bool gated = is_gated(operands, 5);
  expect_shapes(operands.size() == (gated ? 7U : 5U), "group_norm_backward takes 5 operands, or 7 with a gate");
  const OperandType &x = operands[0], &weight = operands[1], &dy = operands[gated ? 3 : 2], &dweight = operands.back();
  GroupedRows(x.shape, weight.shape, dy.shape, std::get<GroupNormAttributes>(any));
  expect_shapes(operands[gated ? 4 : 3].shape == x.shape && dweight.shape == weight.shape &&
                    (!gated || operands[2].shape == operands[5].shape),
                "group_norm's gradients are shaped as what they belong to");
  if (gated) expect_gate(operands[2].shape, x.shape, std::get<GroupNormAttributes>(any));
  return memory_cost((gated ? 5 : 3) * x.bytes() + weight.bytes() + 2 * dweight.bytes());
}

// With n = x / deviation and g = w silu(z) dy: dx = (g - n mean(g n)) / deviation; dw += dy silu(z) n; dz = dy w n silu'(z).
void group_norm_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GroupNormAttributes>(any);
  const bool gated = is_gated(operands, 5);
  const HostTensor &x = operands[0], &weight = operands[1], &dy = operands[gated ? 3 : 2], &dx = operands[gated ? 4 : 3];
  const HostTensor& dweight = operands.back();
  const GroupedRows n(x.shape, weight.shape, dy.shape, attributes);
  std::vector<double> sums(static_cast<std::size_t>(weight.shape.elements())), g(static_cast<std::size_t>(n.width));
  for (std::int64_t part = 0; part < n.rows * n.groups; ++part) {
    const std::int64_t first = part * n.width;
    const std::int64_t gate_at = gated ? n.gate_at(part, columns_of(operands[2].shape), attributes.gate_column) : 0;
    const float *in = x.f32() + first, *w = weight.f32() + n.weight_at(part), *gradient = dy.f32() + first;
    const double inverse = inverse_deviation_of(in, n.width, attributes.epsilon);
    double projection = 0;
    for (std::int64_t i = 0; i < n.width; ++i) {
      const double gate = gated ? operands[2].f32()[gate_at + i] : 0, sigmoid = sigmoid_of(gate);
      const double opened = gated ? gate * sigmoid : 1.0, normalised = in[i] * inverse;
      g[static_cast<std::size_t>(i)] = w[i] * opened * gradient[i];
      projection += g[static_cast<std::size_t>(i)] * normalised;
      sums[static_cast<std::size_t>(n.weight_at(part) + i)] += gradient[i] * opened * normalised;
      if (gated)
        operands[5].f32()[gate_at + i] =
            static_cast<float>(gradient[i] * w[i] * normalised * sigmoid * (1 + gate * (1 - sigmoid)));
    }
    const double mean = projection / static_cast<double>(n.width);
    for (std::int64_t i = 0; i < n.width; ++i)
      dx.f32()[first + i] = static_cast<float>(inverse * (g[static_cast<std::size_t>(i)] - in[i] * inverse * mean));
  }
  for (std::size_t i = 0; i < sums.size(); ++i) dweight.f32()[i] += static_cast<float>(sums[i]);
}

}  // namespace tandem
