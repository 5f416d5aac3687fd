#pragma once

#include <cstddef>

#include "runtime/cuda/module/check.h"

namespace tandem {

/// A block of the GPU's memory. The constructor throws std::runtime_error, with the size that was asked for, when there is not so
/// much.
class GpuMemory {
 public:
  GpuMemory() = default;
  explicit GpuMemory(std::size_t bytes) {
    if (bytes == 0) return;
    const cudaError_t error = cudaMalloc(&data_, bytes);
    if (error != cudaSuccess)
      throw std::runtime_error("cudaMalloc of " + std::to_string(bytes >> 20) + " MiB: " + cudaGetErrorString(error));
  }
  GpuMemory(GpuMemory&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  GpuMemory& operator=(GpuMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~GpuMemory() { cudaFree(data_); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace tandem
