#include "runtime/cuda/module/multiply.h"

#include <algorithm>

#include "runtime/cuda/module/check.h"
#include "runtime/cuda/module/convert.h"
#include "runtime/cuda/module/cublas_lt.h"
#include "runtime/cuda/module/say_once.h"
#include "runtime/cuda/module/scratch.h"
#include "runtime/cuda/multiplied_types.h"

namespace tandem {
namespace {

DeviceTensor piece_of(Scratch& scratch, const OperandType& type) {
  return {.data = scratch.take(static_cast<std::size_t>(type.bytes())), .shape = type.shape, .dtype = type.dtype};
}

std::byte* at(const DeviceTensor& tensor, std::int64_t offset) {
  return tensor.as<std::byte>() + offset * static_cast<std::int64_t>(size_of(tensor.dtype));
}

std::int32_t alignment_of(std::initializer_list<const void*> addresses) {
  std::uintptr_t alignment = 16;
  for (const void* address : addresses) {
    while (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) alignment /= 2;
  }
  return static_cast<std::int32_t>(alignment);
}

/// The batch as one call of cuBLASLt on tensors of the types it is multiplied in.
struct Call {
  Matmul matmul;
  MatmulData data;

  Call(const ProductBatch& batch, const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& c,
       const Multiplication& multiplication)
      : data{.first = at(b, batch.first.b.offset),
             .second = at(a, batch.first.a.offset),
             .result = at(c, batch.first.c.offset),
             .first_scale = b.scale,
             .second_scale = a.scale,
             .factor = multiplication.factor} {
    matmul = {.product = column_major(batch),
              .operands = a.dtype,
              .result = c.dtype,
              .accumulate = multiplication.accumulate,
              .alignment = alignment_of({data.first, data.second, data.result})};
  }
};

std::vector<ProductBatch> one_by_one(const ProductBatch& batch) {
  std::vector<ProductBatch> products;
  for (std::int32_t i = 0; i < batch.count; ++i) {
    MatrixProduct product = batch.first;
    product.a.offset += i * batch.a_step;
    product.b.offset += i * batch.b_step;
    product.c.offset += i * batch.c_step;
    products.push_back({product});
  }
  return products;
}

/// Returns whether cuBLASLt has algorithms for products of these types, wherever their operands lie.
bool has_algorithms(const Multiplication& multiplication, DType a, DType b, DType c) {
  CublasLt& cublas = CublasLt::of_this_device();
  const auto has_one = [&](const ProductBatch& batch) {
    const Call call(batch, {.shape = {}, .dtype = a}, {.shape = {}, .dtype = b}, {.shape = {}, .dtype = c}, multiplication);
    return cublas.supports(call.matmul, call.data);
  };
  return std::ranges::all_of(multiplication.batches, [&](const ProductBatch& batch) {
    return batch.first.size.k == 0 || has_one(batch) || std::ranges::all_of(one_by_one(batch), has_one);
  });
}

/// Products in fp8 that the device, or its cuBLASLt, does not have are computed in bf16.
template <typename Operand>
MultipliedTypes choose_types(std::span<const Operand, 3> operands, const Multiplication& multiplication) {
  const DType a = operands[0].dtype, b = operands[1].dtype, c = operands[2].dtype;
  const bool fp8 = a == DType::f8 && b == DType::f8 && std::ranges::all_of(multiplication.batches, fits_fp8) &&
                   CublasLt::of_this_device().multiplies_fp8();
  const MultipliedTypes types = multiplied_types(a, b, c, fp8);
  if (!fp8 || has_algorithms(multiplication, types.operands, types.operands, types.result)) return types;
  const auto [m, n, k] = multiplication.batches.front().first.size;
  say_once("cuBLASLt has no algorithm for " + std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
           " in fp8, which is multiplied in bf16");
  return multiplied_types(a, b, c, false);
}

/// Calls `use` for each call that the batch takes, which is one where cuBLASLt has an algorithm for the whole batch.
template <typename Use>
void for_each_call(const ProductBatch& batch, std::span<const DeviceTensor, 3> operands, const Multiplication& multiplication,
                   Use use) {
  const auto& [a, b, c] = std::tie(operands[0], operands[1], operands[2]);
  const Call whole(batch, a, b, c, multiplication);
  if (batch.count == 1 || CublasLt::of_this_device().supports(whole.matmul, whole.data)) return use(whole);
  for (const ProductBatch& product : one_by_one(batch)) use(Call(product, a, b, c, multiplication));
}

/// Writes the result of products over no depth. C's rows lie one after the other, also from one product to the next.
void write_zeros(const Queue& queue, const ProductBatch& batch, const DeviceTensor& c) {
  const auto [m, n, k] = batch.first.size;
  const auto bytes = static_cast<std::size_t>(batch.count * m * n) * size_of(c.dtype);
  check(cudaMemsetAsync(at(c, batch.first.c.offset), 0, bytes, queue.stream), "cudaMemsetAsync");
}

void multiply_as_typed(const Queue& queue, std::span<const DeviceTensor, 3> operands, const Multiplication& multiplication) {
  for (const ProductBatch& batch : multiplication.batches) {
    if (batch.first.size.k == 0) {
      if (!multiplication.accumulate) write_zeros(queue, batch, operands[2]);
      continue;
    }
    for_each_call(batch, operands, multiplication,
                  [&](const Call& call) { CublasLt::of_this_device().run(queue, call.matmul, call.data); });
  }
}

/// A tensor for a trial; its memory is freed with it.
class TrialTensor {
 public:
  /// Leaves `data` null where there is not enough memory.
  TrialTensor(const OperandType& type, const Queue& queue) : tensor_{.shape = type.shape, .dtype = type.dtype} {
    // Every type makes a small number of such bytes.
    constexpr int pattern = 0x3C;
    const auto bytes = static_cast<std::size_t>(type.bytes());
    if (cudaMalloc(&tensor_.data, bytes) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return;
    }
    check(cudaMemsetAsync(tensor_.data, pattern, bytes, queue.stream), "cudaMemset");
    check(cudaStreamSynchronize(queue.stream), "cudaMemset");
  }
  TrialTensor(const TrialTensor&) = delete;
  TrialTensor& operator=(const TrialTensor&) = delete;
  ~TrialTensor() { cudaFree(tensor_.data); }

  const DeviceTensor& tensor() const { return tensor_; }

 private:
  DeviceTensor tensor_;
};

}  // namespace

void multiply(Queue& queue, std::span<const DeviceTensor, 3> operands, const Multiplication& multiplication) {
  const auto [operand_type, result_type] = choose_types(operands, multiplication);
  Scratch scratch(queue);
  scratch.take(CublasLt::of_this_device().workspace_bytes());
  const auto converted = [&, type = operand_type](const DeviceTensor& operand) {
    if (operand.dtype == type) return operand;
    const DeviceTensor copy = piece_of(scratch, {operand.shape, type});
    convert("gemm", queue, 1, operand, copy);
    return copy;
  };
  const DeviceTensor a = converted(operands[0]), b = converted(operands[1]), c = operands[2];
  if (result_type == c.dtype) return multiply_as_typed(queue, std::array{a, b, c}, multiplication);
  const DeviceTensor wide = piece_of(scratch, {c.shape, result_type});
  if (multiplication.accumulate) convert("gemm", queue, 1, c, wide);
  multiply_as_typed(queue, std::array{a, b, wide}, multiplication);
  convert("gemm", queue, 1, wide, c);
}

std::size_t multiply_scratch(std::span<const OperandType, 3> operands, const Multiplication& multiplication) {
  const auto [operand_type, result_type] = choose_types(operands, multiplication);
  const auto of_copy = [](const OperandType& tensor, DType type) {
    return tensor.dtype == type
               ? 0
               : scratch_piece(static_cast<std::size_t>(OperandType{.shape = tensor.shape, .dtype = type}.bytes()));
  };
  return CublasLt::of_this_device().workspace_bytes() + of_copy(operands[0], operand_type) + of_copy(operands[1], operand_type) +
         of_copy(operands[2], result_type);
}

void prepare_multiply(Queue& queue, std::span<const OperandType, 3> operands, const Multiplication& multiplication) {
  const auto [operand_type, result_type] = choose_types(operands, multiplication);
  const TrialTensor a({operands[0].shape, operand_type}, queue), b({operands[1].shape, operand_type}, queue),
      c({operands[2].shape, result_type}, queue);
  if (a.tensor().data == nullptr || b.tensor().data == nullptr || c.tensor().data == nullptr) return;
  for (const ProductBatch& batch : multiplication.batches) {
    if (batch.first.size.k == 0) continue;
    for_each_call(batch, std::array{a.tensor(), b.tensor(), c.tensor()}, multiplication,
                  [&](const Call& call) { CublasLt::of_this_device().choose(queue, call.matmul, call.data); });
  }
}

}  // namespace tandem
