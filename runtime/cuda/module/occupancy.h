#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cuda/module/launch.h"

namespace tandem {

/// Returns how many blocks of a kernel the GPU runs at once; 1 for each multiprocessor where CUDA does not say.
template <typename... Parameters>
std::int64_t blocks_at_once(const Queue& queue, void (*kernel)(Parameters...), unsigned threads, std::size_t shared_bytes = 0) {
  int of_multiprocessor = 1;
#if defined(__CUDACC__) && !defined(TANDEM_EMULATED)
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_multiprocessor, kernel, static_cast<int>(threads), shared_bytes) !=
      cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    of_multiprocessor = 1;
  }
#else
  static_cast<void>(kernel), static_cast<void>(threads), static_cast<void>(shared_bytes);
#endif
  return std::int64_t{queue.multiprocessors} * std::max(of_multiprocessor, 1);
}

/// Returns into how many slices, at most `most`, to cut work of which each takes so many blocks: as many as run at once, so that
/// no few blocks are left for a last round; but `most` where slices are so large that this would leave much of the GPU idle.
inline std::int64_t slices_at_once(std::int64_t blocks_at_once, std::int64_t blocks_of_slice, std::int64_t most) {
  constexpr std::int64_t fewest = 4;
  const std::int64_t slices = blocks_at_once / std::max<std::int64_t>(blocks_of_slice, 1);
  return slices < fewest ? most : std::min(slices, most);
}

}  // namespace tandem
