#pragma once

#include <array>
#include <span>
#include <stdexcept>
#include <string>

#include "runtime/ops/operation.h"

namespace tandem {

// What the operations' files share. `Operand` types here are OperandType (costs) or HostTensor (kernels): both have a shape, so
// that one shape rule serves both.

/// A broken shape rule is a lowering bug.
inline void expect_shapes(bool hold, const char* rule) {
  if (!hold) throw std::logic_error(std::string("wrong operand shapes: ") + rule);
}

/// The operands by name: `const auto [a, b, c] = unpack<3>(operands, "gemm")`.
template <std::size_t count, typename OperandT>
std::array<OperandT, count> unpack(std::span<const OperandT> operands, const char* operation_name) {
  if (operands.size() != count)
    throw std::logic_error(std::string(operation_name) + " takes " + std::to_string(count) + " operands, not " +
                           std::to_string(operands.size()));
  std::array<OperandT, count> result;
  for (std::size_t i = 0; i < count; ++i) result[i] = operands[i];
  return result;
}

/// A shape as a matrix: the last dimension is the columns, all others together the rows.
constexpr std::int64_t columns_of(const Shape& shape) { return shape.rank == 0 ? 1 : shape[shape.rank - 1U]; }
constexpr std::int64_t rows_of(const Shape& shape) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.rank; ++i) rows *= shape[i];
  return rows;
}

template <typename... Operands>
Bytes bytes_of(const Operands&... operands) {
  return (Bytes{0} + ... + operands.bytes());
}

/// The cost of a kernel that only moves memory.
inline OpCost memory_cost(Bytes bytes) { return {.flops = 0, .math = DType::f32, .bytes = bytes}; }

}  // namespace tandem
