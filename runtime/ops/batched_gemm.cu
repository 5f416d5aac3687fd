#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/multiply.h"
#include "runtime/ops/batched_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// A strided batch for each query head of a key head: one without grouped queries.
std::vector<Multiplication> multiplications_of(const std::array<OperandType, 3>& types, const OpAttributes& any) {
  const auto& attributes = std::get<BatchedGemmAttributes>(any);
  const BatchedProducts products = batched_products(types[0].shape, types[1].shape, types[2].shape, attributes);
  std::vector<Multiplication> multiplications;
  for (const std::vector<MatrixProduct>& turn : products.turns) {
    multiplications.push_back(
        {.batches = batches_of(turn), .accumulate = products.turns_add && !multiplications.empty(), .factor = attributes.factor});
  }
  return multiplications;
}

}  // namespace

void batched_gemm_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto tensors = unpack<3>(operands, "batched_gemm");
  for (const Multiplication& multiplication : multiplications_of(types_of(tensors), attributes))
    multiply(queue, tensors, multiplication);
}

std::size_t batched_gemm_scratch(std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "batched_gemm");
  std::size_t bytes = 0;
  for (const Multiplication& multiplication : multiplications_of(types, attributes))
    bytes = std::max(bytes, multiply_scratch(types, multiplication));
  return bytes;
}

void prepare_batched_gemm(Queue& queue, std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto types = unpack<3>(operands, "batched_gemm");
  for (const Multiplication& multiplication : multiplications_of(types, attributes))
    prepare_multiply(queue, types, multiplication);
}

}  // namespace tandem
