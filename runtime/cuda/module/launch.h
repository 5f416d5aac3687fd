#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "runtime/base/divide_up.h"
#include "runtime/cuda/module/kernel.h"

#ifdef TANDEM_EMULATED
#include "runtime/cuda/emulation/grid.h"
#include "runtime/cuda/emulation/streams.h"
#endif

namespace tandem {

/// The number of blocks and of threads in each, and the shared memory that they ask for beside what the kernel declares.
struct Grid {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes = 0;
};

/// A grid's first dimension. Throws std::logic_error when CUDA knows no such grid.
inline unsigned blocks_along_x(std::int64_t count) {
  if (count < 0 || count > 0x7FFFFFFF) throw std::logic_error("a grid of " + std::to_string(count) + " blocks");
  return static_cast<unsigned>(count);
}

/// Puts the kernel into the queue's stream; a grid without blocks is nothing to do. Throws std::runtime_error with the kernel's
/// name when CUDA refuses the launch. For kernels' files (*.cu) alone: a program without CUDA's compiler cannot call it.
template <typename... Parameters>
void launch(const char* name, const Queue& queue, const Grid& grid, void (*kernel)(Parameters...),
            std::type_identity_t<Parameters>... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return;
#if defined(TANDEM_EMULATED)
  if (cudaGetLastError() != cudaSuccess) throw std::runtime_error(std::string(name) + ": an error that another call has left");
  emulation::put(queue.stream,
                 [=] { emulation::run_grid(name, grid.blocks, grid.threads, grid.shared_bytes, [&] { kernel(arguments...); }); });
#elif defined(__CUDACC__)
  // Of shared memory the compiler loads 16 bytes at once, also where fewer are asked for.
  const auto shared_bytes = static_cast<std::size_t>(round_up(static_cast<std::int64_t>(grid.shared_bytes), 16));
  // Unasked CUDA grants 48 KB, of which what the kernel declares is taken.
  constexpr auto most = cudaFuncAttributeMaxDynamicSharedMemorySize;
  cudaError_t error = shared_bytes > 0 ? cudaFuncSetAttribute(kernel, most, static_cast<int>(shared_bytes)) : cudaSuccess;
  if (error == cudaSuccess) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid.blocks;
    config.blockDim = grid.threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = queue.stream;
    error = cudaLaunchKernelEx(&config, kernel, arguments...);
  }
  const cudaError_t left = cudaGetLastError();  // taken away, so that nobody else is blamed for it
  if (error == cudaSuccess) error = left;
  if (error != cudaSuccess) throw std::runtime_error(std::string(name) + ": " + cudaGetErrorString(error));
#else
  static_assert(sizeof...(Parameters) > 1000, "launch is for kernels' files");
#endif
}

}  // namespace tandem
