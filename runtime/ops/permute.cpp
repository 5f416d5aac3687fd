#include "runtime/ops/permute.h"

#include <algorithm>
#include <numeric>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void check_permute(const Shape& tokens, const Shape& slots, const Shape& rows) {
  expect_shapes(rows_of(tokens) == rows_of(slots) && columns_of(tokens) == columns_of(rows),
                "tokens [T,h], slots [T,k] and rows [R,h] fit each other");
}

/// Calls `visit(row, token, choice)` for each choice that was not dropped; `row` and `token` are of width h.
template <typename Visit>
void for_each_choice(const HostTensor& rows, const HostTensor& slots, const HostTensor& tokens, Visit visit) {
  check_permute(tokens.shape, slots.shape, rows.shape);
  const std::int64_t width = columns_of(rows.shape), choices = columns_of(slots.shape);
  for (std::int64_t choice = 0; choice < slots.shape.elements(); ++choice) {
    const std::int32_t slot = slots.i32()[choice];
    if (slot >= 0) visit(rows.f32() + slot * width, tokens.f32() + choice / choices * width, choice);
  }
}

void clear(const HostTensor& tensor) { std::fill_n(tensor.f32(), tensor.shape.elements(), 0.0F); }

void check_regroup(const Shape& x, const Shape& y, const RegroupAttributes& attributes) {
  const std::int64_t of_block = std::accumulate(attributes.rows.begin(), attributes.rows.end(), std::int64_t{0});
  const Shape& by_source = attributes.inverse ? y : x;
  const Shape& by_expert = attributes.inverse ? x : y;
  expect_shapes(of_block <= attributes.block && rows_of(by_source) == std::int64_t{attributes.blocks} * attributes.block &&
                    rows_of(by_expert) == attributes.blocks * of_block && columns_of(x) == columns_of(y),
                "regroup's blocks hold the rows of all experts");
}

}  // namespace

OpCost permute_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, slots, rows] = unpack<3>(operands, "permute");
  check_permute(x.shape, slots.shape, rows.shape);
  return memory_cost(bytes_of(x, slots, rows));
}

void permute_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [x, slots, rows] = unpack<3>(operands, "permute");
  const std::int64_t width = columns_of(x.shape);
  clear(rows);
  for_each_choice(rows, slots, x, [&](float* row, const float* token, std::int64_t) { std::copy_n(token, width, row); });
}

OpCost permute_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [drows, slots, dx] = unpack<3>(operands, "permute_backward");
  check_permute(dx.shape, slots.shape, drows.shape);
  return memory_cost(bytes_of(drows, slots, dx));
}

void permute_backward_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [drows, slots, dx] = unpack<3>(operands, "permute_backward");
  const std::int64_t width = columns_of(dx.shape);
  clear(dx);
  for_each_choice(drows, slots, dx, [&](const float* row, float* token, std::int64_t) {
    for (std::int64_t i = 0; i < width; ++i) token[i] += row[i];
  });
}

OpCost combine_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [rows, slots, gates, y] = unpack<4>(operands, "combine");
  check_permute(y.shape, slots.shape, rows.shape);
  return memory_cost(bytes_of(rows, slots, gates, y));
}

void combine_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [rows, slots, gates, y] = unpack<4>(operands, "combine");
  const std::int64_t width = columns_of(y.shape);
  const float* gate = gates.f32();
  clear(y);
  for_each_choice(rows, slots, y, [&](const float* row, float* token, std::int64_t choice) {
    for (std::int64_t i = 0; i < width; ++i) token[i] += gate[choice] * row[i];
  });
}

OpCost combine_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [dy, rows, slots, gates, drows, dgates] = unpack<6>(operands, "combine_backward");
  check_permute(dy.shape, slots.shape, rows.shape);
  return memory_cost(bytes_of(dy, rows, slots, gates, drows, dgates));
}

void combine_backward_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [dy, rows, slots, gates, drows, dgates] = unpack<6>(operands, "combine_backward");
  const std::int64_t width = columns_of(dy.shape);
  const float* gate = gates.f32();
  float* dgate = dgates.f32();
  clear(drows);
  clear(dgates);
  for_each_choice(drows, slots, dy, [&](float* drow, const float* token, std::int64_t choice) {
    for (std::int64_t i = 0; i < width; ++i) drow[i] = gate[choice] * token[i];
  });
  for_each_choice(rows, slots, dy, [&](const float* row, const float* token, std::int64_t choice) {
    dgate[choice] = static_cast<float>(sum_of(width, [&](std::int64_t i) { return double{row[i]} * double{token[i]}; }));
  });
}

OpCost regroup_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "regroup");
  check_regroup(x.shape, y.shape, std::get<RegroupAttributes>(any));
  return memory_cost(bytes_of(x, y));
}

void regroup_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<RegroupAttributes>(any);
  const auto [x, y] = unpack<2>(operands, "regroup");
  check_regroup(x.shape, y.shape, attributes);
  const std::int64_t width = columns_of(x.shape);
  if (attributes.inverse) clear(y);
  std::int64_t by_expert = 0, before = 0;  // rows so far; rows of earlier experts in a block
  for (const std::int64_t rows : attributes.rows) {
    for (std::int64_t block = 0; block < attributes.blocks; ++block) {
      const std::int64_t by_source = block * attributes.block + before;
      const std::int64_t from = attributes.inverse ? by_expert : by_source;
      const std::int64_t to = attributes.inverse ? by_source : by_expert;
      std::copy_n(x.f32() + from * width, rows * width, y.f32() + to * width);
      by_expert += rows;
    }
    before += rows;
  }
}

}  // namespace tandem
