#include "studies/step/device_memory.h"

#include "runtime/analysis/allocator_replay.h"
#include "sim/nccl_memory.h"

namespace tandem::studies {

DeviceMemory device_memory(const Dag& dag, const MemoryChanges& changes, RankIndex rank) {
  const AllocatorUse allocator = replay_allocator(dag, changes, rank, {.expandable_segments = dag.software.expandable_segments});
  return {.allocated = allocator.allocated,
          .reserved = allocator.reserved,
          .communicators = sim::nccl_memory(dag, rank),
          .context = dag.software.context};
}

}  // namespace tandem::studies
