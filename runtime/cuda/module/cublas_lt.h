#pragma once

#include <cublasLt.h>

#include <map>
#include <mutex>
#include <optional>

#include "runtime/cuda/column_major_product.h"
#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// Everything that the algorithm of a product depends on.
struct Matmul {
  ColumnMajorProduct product;
  DType operands = DType::f32;
  DType result = DType::f32;
  bool accumulate = false;
  std::int32_t alignment = 16;  ///< of every matrix, in bytes; more than 16 gains nothing
  auto operator<=>(const Matmul&) const = default;
};

/// The matrices of the (first) product, in the GPU's memory; of fp8 operands also their scales.
struct MatmulData {
  const void* first = nullptr;
  const void* second = nullptr;
  void* result = nullptr;
  const float* first_scale = nullptr;
  const float* second_scale = nullptr;
  float factor = 1;  ///< of the product
};

/// cuBLASLt on one device, with the algorithms chosen so far. Any thread may use it. Products are summed in fp32, TF32 and fp8's
/// fast accumulation off; where a sum is taken in parts, the parts are fp32 and added in a fixed order.
class CublasLt {
 public:
  /// Returns the instance of the calling thread's device. It is never destroyed: CUDA may be gone when a process ends.
  static CublasLt& of_this_device();

  explicit CublasLt(int device);
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Returns whether the device multiplies fp8, which those from compute capability 8.9 on do.
  bool multiplies_fp8() const { return multiplies_fp8_; }

  /// Returns how much of the queue's scratch it uses, from the beginning. The sizes are cuBLAS's own:
  /// https://docs.nvidia.com/cuda/cublas/#cublassetworkspace.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

  /// Returns whether cuBLASLt has an algorithm for the product.
  bool supports(const Matmul& matmul, const MatmulData& data);

  /// Multiplies by the algorithm that was chosen, or without a choice by the heuristic's first.
  void run(const Queue& queue, const Matmul& matmul, const MatmulData& data);

  /// The algorithms that `choose` tries at most, and how often it multiplies by each of a product that takes long.
  static constexpr int most_algorithms = 8, fewest_trials = 4;

  /// Times the heuristic's best algorithms on `data`, whose result is overwritten, and keeps the fastest for `run`; once for each
  /// product. One that fails is passed over; where all fail, cuBLASLt has none for the product from then on. Waits for the
  /// stream: not while it is captured, nor in a measured step.
  void choose(const Queue& queue, const Matmul& matmul, const MatmulData& data);

  /// Forgets all choices.
  void forget() {
    const std::lock_guard lock(mutex_);
    choices_.clear();
  }

 private:
  struct Choice {
    std::optional<cublasLtMatmulAlgo_t> algorithm;
    bool by_trial = false;
  };
  Choice& choice_of(const Matmul& matmul, const MatmulData& data);

  std::mutex mutex_;
  cublasLtHandle_t handle_ = nullptr;
  bool multiplies_fp8_ = false;
  std::size_t workspace_bytes_ = 0;
  std::map<Matmul, Choice> choices_;
};

}  // namespace tandem
