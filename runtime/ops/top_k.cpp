#include "runtime/ops/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

template <typename Operand>
void expect_selection(const Operand& x, const Operand& values, const Operand& indices, const Operand& residual) {
  expect_shapes(x.shape.elements() == residual.shape.elements(), "top_k_select's residual is as large as what it selects from");
  expect_shapes(values.shape == indices.shape, "top_k_select writes a value for each index");
  expect_shapes(values.shape.elements() <= x.shape.elements(), "top_k_select selects no more than there are");
}

template <typename Operand>
void expect_selections(const Operand& values, const Operand& indices) {
  expect_shapes(values.shape == indices.shape && values.shape.rank == 2, "sparse_sum adds up selections of equal size");
}

}  // namespace

OpCost top_k_select_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, values, indices, residual] = unpack<4>(operands, "top_k_select");
  expect_selection(x, values, indices, residual);
  constexpr Bytes passes = 5, written = 1;
  return memory_cost(bytes_of(x, values, indices) + (passes + written) * residual.bytes());
}

void top_k_select_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [x, values, indices, residual] = unpack<4>(operands, "top_k_select");
  expect_selection(x, values, indices, residual);
  const std::int64_t n = x.shape.elements(), k = values.shape.elements();
  float* rest = residual.f32();
  for (std::int64_t i = 0; i < n; ++i) rest[i] += x.f32()[i];
  std::vector<std::int32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [rest](std::int32_t a, std::int32_t b) {
    const float first = std::abs(rest[a]), second = std::abs(rest[b]);
    return first > second || (first == second && a < b);
  };
  if (k < n) std::nth_element(order.begin(), order.begin() + k, order.end(), before);
  std::sort(order.begin(), order.begin() + k);
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int32_t index = order[static_cast<std::size_t>(i)];
    indices.i32()[i] = index;
    values.f32()[i] = std::exchange(rest[index], 0.0F);
  }
}

OpCost sparse_sum_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [values, indices, y] = unpack<3>(operands, "sparse_sum");
  expect_selections(values, indices);
  return memory_cost(bytes_of(values, indices, y));
}

void sparse_sum_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [values, indices, y] = unpack<3>(operands, "sparse_sum");
  expect_selections(values, indices);
  std::fill_n(y.f32(), y.shape.elements(), 0.0F);
  for (std::int64_t i = 0; i < values.shape.elements(); ++i) y.f32()[indices.i32()[i]] += values.f32()[i];
}

}  // namespace tandem
