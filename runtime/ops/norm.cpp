#include "runtime/ops/norm.h"

#include <cmath>
#include <vector>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void check_shapes(const Shape& x, const Shape& weight, const Shape& y, NormKind kind) {
  const std::int64_t weight_rows = kind == NormKind::layer ? 2 : 1;
  expect_shapes(x == y, "norm's input and output are alike");
  expect_shapes(columns_of(weight) == columns_of(x) && rows_of(weight) == weight_rows,
                "norm's weight is [1,h] for rms, [2,h] for layer");
}

/// normalised = (x - mean) * inverse_deviation
struct RowStatistics {
  float mean = 0;
  float inverse_deviation = 0;
};

RowStatistics statistics_of(const float* x, std::int64_t width, const NormAttributes& attributes) {
  const auto n = static_cast<double>(width);
  const double mean = attributes.kind == NormKind::layer ? sum_of(width, [=](auto i) { return double{x[i]}; }) / n : 0.0;
  const double variance = sum_of(width, [=](auto i) { return (x[i] - mean) * (x[i] - mean); }) / n;
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(variance + attributes.epsilon))};
}

void normalise_row(const float* x, const float* weight, const float* bias, float* y, std::int64_t width,
                   const RowStatistics& row) {
  for (std::int64_t i = 0; i < width; ++i) y[i] = weight[i] * ((x[i] - row.mean) * row.inverse_deviation);
  if (bias == nullptr) return;
  for (std::int64_t i = 0; i < width; ++i) y[i] += bias[i];
}

void differentiate_row(const float* normalised, const float* weight, const float* dy, float* dx, std::int64_t width,
                       NormKind kind, float inverse_deviation) {
  const auto n = static_cast<double>(width);
  const auto gradient = [=](std::int64_t i) { return double{weight[i]} * dy[i]; };
  const double mean_projection = sum_of(width, [=](auto i) { return gradient(i) * normalised[i]; }) / n;
  const double mean_gradient = kind == NormKind::layer ? sum_of(width, gradient) / n : 0.0;
  for (std::int64_t i = 0; i < width; ++i)
    dx[i] = static_cast<float>(inverse_deviation * (gradient(i) - mean_gradient - normalised[i] * mean_projection));
}

}  // namespace

OpCost norm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, weight, y] = unpack<3>(operands, "norm");
  check_shapes(x.shape, weight.shape, y.shape, std::get<NormAttributes>(any).kind);
  return memory_cost(bytes_of(x, weight, y));
}

void norm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<NormAttributes>(any);
  const auto [x, weight, y] = unpack<3>(operands, "norm");
  check_shapes(x.shape, weight.shape, y.shape, attributes.kind);
  const std::int64_t width = columns_of(x.shape);
  const float* bias = attributes.kind == NormKind::layer ? weight.f32() + width : nullptr;
  for (std::int64_t row = 0; row < rows_of(x.shape); ++row) {
    const float* input = x.f32() + row * width;
    normalise_row(input, weight.f32(), bias, y.f32() + row * width, width, statistics_of(input, width, attributes));
  }
}

OpCost norm_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, weight, dy, dx, dweight] = unpack<5>(operands, "norm_backward");
  check_shapes(x.shape, weight.shape, dy.shape, std::get<NormAttributes>(any).kind);
  expect_shapes(dx.shape == x.shape && dweight.shape == weight.shape, "norm's gradients are shaped as what they belong to");
  return memory_cost(bytes_of(x, weight, dy, dx) + 2 * dweight.bytes());
}

void norm_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<NormAttributes>(any);
  const auto [x, weight, dy, dx, dweight] = unpack<5>(operands, "norm_backward");
  check_shapes(x.shape, weight.shape, dy.shape, attributes.kind);
  const auto width = columns_of(x.shape);
  std::vector<float> normalised(static_cast<std::size_t>(width));
  std::vector<double> weight_gradient(normalised.size()), bias_gradient(normalised.size());
  for (std::int64_t row = 0; row < rows_of(x.shape); ++row) {
    const float* input = x.f32() + row * width;
    const float* gradient = dy.f32() + row * width;
    const RowStatistics statistics = statistics_of(input, width, attributes);
    for (std::size_t i = 0; i < normalised.size(); ++i) {
      normalised[i] = (input[i] - statistics.mean) * statistics.inverse_deviation;
      weight_gradient[i] += double{gradient[i]} * normalised[i];
      bias_gradient[i] += gradient[i];
    }
    differentiate_row(normalised.data(), weight.f32(), gradient, dx.f32() + row * width, width, attributes.kind,
                      statistics.inverse_deviation);
  }
  for (std::size_t i = 0; i < normalised.size(); ++i) {
    dweight.f32()[i] += static_cast<float>(weight_gradient[i]);
    if (attributes.kind == NormKind::layer) dweight.f32()[normalised.size() + i] += static_cast<float>(bias_gradient[i]);
  }
}

}  // namespace tandem
