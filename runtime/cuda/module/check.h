#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace tandem {

/// Throws std::runtime_error with CUDA's own words.
inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

}  // namespace tandem
