#pragma once

#include <cstdint>

namespace tandem {

/// A row-major fp32 matrix in memory: `stride` elements from one row to the next. When `transposed`, what is multiplied is the
/// transpose of what lies in memory.
struct HostMatrix {
  float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

struct GemmSize {
  std::int64_t m = 0, n = 0, k = 0;
};

/// C[m,n] = factor * A[m,k] B[k,n], added to C's old value when `accumulate`. By OpenBLAS on the calling thread alone.
void host_gemm(GemmSize size, HostMatrix a, HostMatrix b, HostMatrix c, float factor, bool accumulate);

}  // namespace tandem
