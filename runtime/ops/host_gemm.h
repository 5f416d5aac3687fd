#pragma once

#include "runtime/ops/matrix_product.h"

namespace tandem {

/// A row-major fp32 matrix in memory: `stride` elements from one row to the next. When `transposed`, what is multiplied is the
/// transpose of what lies in memory.
struct HostMatrix {
  float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// C[m,n] = factor * A[m,k] B[k,n], added to C's old value when `accumulate`. By OpenBLAS on the calling thread alone.
void host_gemm(GemmSize size, HostMatrix a, HostMatrix b, HostMatrix c, float factor, bool accumulate);

/// Multiplies slices of the operands A, B, C in the same way. Does nothing where C is empty.
void host_gemm(const MatrixProduct& product, std::span<const HostTensor, 3> operands, bool accumulate);

}  // namespace tandem
