#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/multiply.h"
#include "runtime/ops/gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

Multiplication multiplication_of(const std::array<OperandType, 3>& types, const OpAttributes& any) {
  const auto& attributes = std::get<GemmAttributes>(any);
  const MatrixProduct product = gemm_product(types[0], types[1], types[2], attributes);
  return {.batches = batches_of({&product, 1}), .accumulate = attributes.accumulate};
}

}  // namespace

void gemm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto tensors = unpack<3>(operands, "gemm");
  multiply(queue, tensors, multiplication_of(types_of(tensors), attributes));
}

std::size_t gemm_scratch(std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "gemm");
  return multiply_scratch(types, multiplication_of(types, attributes));
}

void prepare_gemm(Queue& queue, std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "gemm");
  prepare_multiply(queue, types, multiplication_of(types, attributes));
}

}  // namespace tandem
