#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/cuda/emulation/streams.h"

// What the kernels' host code calls of CUDA's runtime, on the host's memory; streams.cpp has the rest.

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  tandem::emulation::put(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  tandem::emulation::put(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(tandem::emulation::last_error(), cudaSuccess); }
const char* cudaGetErrorString(cudaError_t) { return "an error of the emulation"; }
}
