#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

// What the kernels' host code calls of CUDA's runtime, on the host's memory. Weak, as a program may link the real one.

extern "C" {

__attribute__((weak)) cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

__attribute__((weak)) cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

__attribute__((weak)) cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

__attribute__((weak)) cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(memory, value, bytes);
}

__attribute__((weak)) cudaError_t cudaGetLastError() { return cudaSuccess; }
__attribute__((weak)) const char* cudaGetErrorString(cudaError_t) { return "an error of the emulation"; }
}
