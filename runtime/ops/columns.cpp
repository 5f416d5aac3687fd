#include "runtime/ops/columns.h"

#include <algorithm>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

template <typename OperandT>
void check_shapes(const OperandT& whole, std::span<const OperandT> parts) {
  std::int64_t columns = 0;
  for (const OperandT& part : parts) {
    expect_shapes(rows_of(part.shape) == rows_of(whole.shape), "columns that are split or joined have equally many rows");
    columns += columns_of(part.shape);
  }
  expect_shapes(columns == columns_of(whole.shape), "columns that are split or joined add up to the whole");
}

OpCost cost(const OperandType& whole, std::span<const OperandType> parts) {
  check_shapes(whole, parts);
  Bytes bytes = whole.bytes();
  for (const OperandType& part : parts) bytes += part.bytes();
  return memory_cost(bytes);
}

/// Calls move(run of the whole, run of the part, length) for each row of each part.
template <typename Move>
void for_each_run(const HostTensor& whole, std::span<const HostTensor> parts, Move move) {
  check_shapes(whole, parts);
  const std::int64_t width = columns_of(whole.shape);
  std::int64_t first = 0;
  for (const HostTensor& part : parts) {
    const std::int64_t columns = columns_of(part.shape);
    for (std::int64_t row = 0; row < rows_of(part.shape); ++row)
      move(whole.f32() + row * width + first, part.f32() + row * columns, columns);
    first += columns;
  }
}

}  // namespace

OpCost split_columns_cost(std::span<const OperandType> operands, const OpAttributes&) {
  return cost(operands.front(), operands.subspan(1));
}

void split_columns_host(std::span<const HostTensor> operands, const OpAttributes&) {
  for_each_run(operands.front(), operands.subspan(1),
               [](const float* whole, float* part, std::int64_t length) { std::copy_n(whole, length, part); });
}

OpCost join_columns_cost(std::span<const OperandType> operands, const OpAttributes&) {
  return cost(operands.back(), operands.first(operands.size() - 1));
}

void join_columns_host(std::span<const HostTensor> operands, const OpAttributes&) {
  for_each_run(operands.back(), operands.first(operands.size() - 1),
               [](float* whole, const float* part, std::int64_t length) { std::copy_n(part, length, whole); });
}

}  // namespace tandem
