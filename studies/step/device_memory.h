#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/analysis/memory.h"
#include "runtime/base/units.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

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

struct StepMemory {
  std::vector<MemoryUse> by_stage;  ///< of the fullest ranks
  /// Of the rank whose device() is largest, among those that are fullest in their pipeline stage and within a twentieth of the
  /// fullest of all; `allocated` is the largest of theirs. Two steps of each are played through the allocator; it has what NCCL
  /// and CUDA leave of the GPU. Nothing where the replay has nothing (allocator_replay.h).
  std::optional<DeviceMemory> device;
};

StepMemory step_memory(const Dag& dag, const Timeline& timeline);

}  // namespace tandem::studies
