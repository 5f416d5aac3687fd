#pragma once

#include <vector>

namespace tandem::cublas_lt_test {

/// What the library and the clock in the place of cuBLASLt's and CUDA's do.
struct FakeCublasLt {
  std::vector<int> advised = {};         ///< the heuristic's algorithms, best first
  std::vector<int> failing = {};         ///< those that cublasLtMatmul refuses
  std::vector<float> milliseconds = {};  ///< that ten products by an algorithm take
  std::vector<int> ran = {};             ///< algorithms of all products so far
};
FakeCublasLt& fake();

}  // namespace tandem::cublas_lt_test
