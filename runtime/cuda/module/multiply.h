#pragma once

#include <array>

#include "runtime/cuda/column_major_product.h"
#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// The products of an operation that reads A and B and writes C.
struct Multiplication {
  std::vector<ProductBatch> batches;
  bool accumulate = false;
  float factor = 1;  ///< of the products
};

inline std::array<OperandType, 3> types_of(const std::array<DeviceTensor, 3>& operands) {
  const auto type = [](const DeviceTensor& operand) { return OperandType{.shape = operand.shape, .dtype = operand.dtype}; };
  return {type(operands[0]), type(operands[1]), type(operands[2])};
}

// cuBLASLt multiplies, in the types of `multiplied_types`, and in fp8 only where all products fit it. The scratch holds
// cuBLASLt's workspace and the tensors that are converted.

void multiply(Queue& queue, std::span<const DeviceTensor, 3> operands, const Multiplication& multiplication);

std::size_t multiply_scratch(std::span<const OperandType, 3> operands, const Multiplication& multiplication);

/// Has cuBLASLt choose its algorithms by trial, on memory that is allocated for it; where there is not enough memory, `multiply`
/// takes what the heuristic holds for best.
void prepare_multiply(Queue& queue, std::span<const OperandType, 3> operands, const Multiplication& multiplication);

}  // namespace tandem
