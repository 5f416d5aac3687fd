#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/multiply.h"
#include "runtime/ops/head_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

// All heads are one strided batch.
Multiplication multiplication_of_heads(const std::array<OperandType, 3>& types, const OpAttributes& any) {
  const auto& attributes = std::get<HeadGemmAttributes>(any);
  return {.batches = batches_of(head_gemm_products(types[0].shape, types[1].shape, types[2].shape, attributes)),
          .accumulate = attributes.transpose_a};
}

}  // namespace

void head_gemm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto tensors = unpack<3>(operands, "head_gemm");
  multiply(queue, tensors, multiplication_of_heads(types_of(tensors), attributes));
}

std::size_t head_gemm_scratch(std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "head_gemm");
  return multiply_scratch(types, multiplication_of_heads(types, attributes));
}

void prepare_head_gemm(Queue& queue, std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "head_gemm");
  prepare_multiply(queue, types, multiplication_of_heads(types, attributes));
}

}  // namespace tandem
