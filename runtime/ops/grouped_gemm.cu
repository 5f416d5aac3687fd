#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/multiply.h"
#include "runtime/ops/grouped_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

// Experts that follow one another with equally many rows, all of them under an even load, are one strided batch: one launch that
// fills the GPU. Others take a launch each, whose few microseconds pass while the one before it multiplies; only experts of few
// rows, whose products are too small to fill the GPU, pay for being apart.
Multiplication multiplication_of(const std::array<OperandType, 3>& types, const OpAttributes& any) {
  const auto& attributes = std::get<GroupedGemmAttributes>(any);
  return {.batches = batches_of(grouped_gemm_products(types[0], types[1], types[2], attributes)),
          .accumulate = attributes.accumulate};
}

}  // namespace

void grouped_gemm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto tensors = unpack<3>(operands, "grouped_gemm");
  multiply(queue, tensors, multiplication_of(types_of(tensors), attributes));
}

std::size_t grouped_gemm_scratch(std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "grouped_gemm");
  return multiply_scratch(types, multiplication_of(types, attributes));
}

void prepare_grouped_gemm(Queue& queue, std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "grouped_gemm");
  prepare_multiply(queue, types, multiplication_of(types, attributes));
}

}  // namespace tandem
