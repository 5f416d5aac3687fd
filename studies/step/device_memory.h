#pragma once

#include <cstdint>

#include "runtime/base/units.h"

namespace tandem::studies {

/// What the fullest rank takes of its GPU's memory at the most, as PyTorch and the driver count it.
struct DeviceMemory {
  Bytes allocated = 0;       ///< torch.cuda.max_memory_allocated: tensors, each block as PyTorch's allocator cuts it
  Bytes reserved = 0;        ///< torch.cuda.max_memory_reserved: with what its allocator keeps beside them
  Bytes communicators = 0;   ///< NCCL's buffers (sim/nccl_memory.h)
  Bytes context = 0;         ///< CUDA's, `Software::context`
  std::int64_t retries = 0;  ///< how often the GPU had no room and PyTorch gave back what it kept (num_alloc_retries)

  /// What nvidia-smi shows.
  Bytes device() const { return reserved + communicators + context; }
  bool operator==(const DeviceMemory&) const = default;
};

}  // namespace tandem::studies
