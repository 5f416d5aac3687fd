#include "runtime/cuda/emulation/cublas_lt.h"

#include <stdexcept>

#include "runtime/cuda/emulation/streams.h"
#include "runtime/cuda/module/cublas_lt.h"
#include "runtime/cuda/module/device.h"

// cuBLASLt's part of the GEMMs: the sums of BLAS's definition on column-major matrices, in fp32.

namespace tandem {
namespace {

template <typename Element>
float element(const void* data, std::int64_t i) {
  return to_float(static_cast<const Element*>(data)[i]);
}

float load(DType type, const void* data, std::int64_t i) {
  switch (type) {
    case DType::f32:
      return element<float>(data, i);
    case DType::bf16:
      return element<Bf16>(data, i);
    case DType::f16:
      return element<F16>(data, i);
    case DType::f8:
      return element<F8>(data, i);
    case DType::i32:
    case DType::u8:
    case DType::f4:
      break;
  }
  throw std::logic_error("not multiplied");
}

/// The product rounded to the result's type, as cuBLASLt 13.1 leaves it on an H200 before it adds what is there.
float rounded(DType type, float value) {
  if (type == DType::bf16) return to_float(from_float<Bf16>(value));
  if (type == DType::f16) return to_float(from_float<F16>(value));
  return value;
}

void store(DType type, void* data, std::int64_t i, float value) {
  if (type == DType::f32) static_cast<float*>(data)[i] = value;
  if (type == DType::bf16) static_cast<Bf16*>(data)[i] = from_float<Bf16>(value);
  if (type == DType::f16) static_cast<F16*>(data)[i] = from_float<F16>(value);
  if (type == DType::f8 || type == DType::i32 || type == DType::u8) throw std::logic_error("not written");
}

/// Returns where op(matrix)[row, column] lies.
std::int64_t place(const ColumnMajorMatrix& matrix, std::int64_t row, std::int64_t column) {
  if (matrix.transposed) std::swap(row, column);
  if (row >= matrix.rows || column >= matrix.columns || matrix.leading < matrix.rows)
    throw std::logic_error("outside of a matrix");
  return column * matrix.leading + row;
}

emulation::Fp8Products fp8_products = emulation::Fp8Products::run;

/// Whether cublasLtMatmulAlgoGetHeuristic refuses the product on Hopper.
bool refused(const Matmul& matmul) {
  const auto& [size, first, second, result, count] = matmul.product;
  const bool tn = first.transposed && !second.transposed;
  const bool aligned = size.m % 16 == 0 && size.k % 16 == 0 && first.leading % 16 == 0 && second.leading % 16 == 0;
  if (matmul.operands == DType::f8 && fp8_products == emulation::Fp8Products::have_no_algorithm) return true;
  return matmul.operands == DType::f8 ? !tn || !aligned : matmul.result != matmul.operands && matmul.result != DType::f32;
}

void multiply(const Matmul& matmul, const MatmulData& data) {
  const auto& [size, first, second, result, count] = matmul.product;
  const float scale =
      data.factor * (data.first_scale ? *data.first_scale : 1.0F) * (data.second_scale ? *data.second_scale : 1.0F);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t row = 0; row < size.m; ++row)
      for (std::int64_t column = 0; column < size.n; ++column) {
        float sum = 0;
        for (std::int64_t k = 0; k < size.k; ++k)
          sum += load(matmul.operands, data.first, i * first.step + place(first, row, k)) *
                 load(matmul.operands, data.second, i * second.step + place(second, k, column));
        const std::int64_t at = i * result.step + place(result, row, column);
        store(matmul.result, data.result, at,
              matmul.accumulate ? rounded(matmul.result, scale * sum) + load(matmul.result, data.result, at) : scale * sum);
      }
}

}  // namespace

void emulation::set_fp8_products(Fp8Products products) { fp8_products = products; }

CublasLt& CublasLt::of_this_device() {
  static CublasLt hopper(0);
  return hopper;
}

CublasLt::CublasLt(int) : multiplies_fp8_(true), workspace_bytes_(256) {}

CublasLt::Choice& CublasLt::choice_of(const Matmul& matmul, const MatmulData&) { return choices_[matmul]; }

/// Of a product that was tried in vain the choice is a trial without an algorithm.
bool CublasLt::supports(const Matmul& matmul, const MatmulData& data) {
  const Choice& choice = choice_of(matmul, data);
  return !refused(matmul) && (!choice.by_trial || choice.algorithm.has_value());
}

void CublasLt::run(const Queue& queue, const Matmul& matmul, const MatmulData& data) {
  if (refused(matmul) || queue.scratch_bytes < workspace_bytes_) throw std::runtime_error("cuBLASLt refuses a product");
  emulation::put(queue.stream, [matmul, data] { multiply(matmul, data); });
}

void CublasLt::choose(const Queue& queue, const Matmul& matmul, const MatmulData& data) {
  run(queue, matmul, data);
  cudaStreamSynchronize(queue.stream);
  Choice& choice = choice_of(matmul, data);
  choice.by_trial = true;
  if (matmul.operands != DType::f8 || fp8_products != emulation::Fp8Products::fail_when_they_are_tried)
    choice.algorithm.emplace();
}

}  // namespace tandem
