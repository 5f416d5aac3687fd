#include "runtime/ops/unit_norm.h"

#include <cmath>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void expect_unit_rows(const Shape& x, const Shape& y) { expect_shapes(x == y, "unit_norm's operands are alike"); }

double inverse_length(const float* x, std::int64_t width, const OpAttributes& any) {
  const double mean = sum_of(width, [=](auto i) { return double{x[i]} * x[i]; }) / static_cast<double>(width);
  return 1 / std::sqrt(mean + std::get<NormAttributes>(any).epsilon);
}

}  // namespace

OpCost unit_norm_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, y] = unpack<2>(operands, "unit_norm");
  expect_unit_rows(x.shape, y.shape);
  return memory_cost(bytes_of(x, y));
}

void unit_norm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "unit_norm");
  expect_unit_rows(x.shape, y.shape);
  const std::int64_t width = columns_of(x.shape);
  for (std::int64_t row = 0; row < rows_of(x.shape); ++row) {
    const float* const in = x.f32() + row * width;
    const double inverse = inverse_length(in, width, any);
    for (std::int64_t i = 0; i < width; ++i) y.f32()[row * width + i] = static_cast<float>(in[i] * inverse);
  }
}

OpCost unit_norm_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, dy, dx] = unpack<3>(operands, "unit_norm_backward");
  expect_unit_rows(x.shape, dy.shape);
  expect_unit_rows(x.shape, dx.shape);
  return memory_cost(bytes_of(x, dy, dx));
}

void unit_norm_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, dy, dx] = unpack<3>(operands, "unit_norm_backward");
  expect_unit_rows(x.shape, dy.shape);
  expect_unit_rows(x.shape, dx.shape);
  const std::int64_t width = columns_of(x.shape);
  for (std::int64_t row = 0; row < rows_of(x.shape); ++row) {
    const float *const in = x.f32() + row * width, *const gradient = dy.f32() + row * width;
    const double inverse = inverse_length(in, width, any);
    const double mean = sum_of(width, [=](auto i) { return double{gradient[i]} * in[i]; }) * inverse / static_cast<double>(width);
    for (std::int64_t i = 0; i < width; ++i)
      dx.f32()[row * width + i] = static_cast<float>(inverse * (gradient[i] - in[i] * inverse * mean));
  }
}

}  // namespace tandem
