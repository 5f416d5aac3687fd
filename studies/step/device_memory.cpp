#include "studies/step/device_memory.h"

#include <algorithm>

#include "runtime/analysis/allocator_replay.h"
#include "sim/nccl_memory.h"

namespace tandem::studies {

DeviceMemory device_memory(const Dag& dag, const Timeline& timeline, const MemoryChanges& changes, RankIndex rank) {
  DeviceMemory memory{.communicators = sim::nccl_memory(dag, rank), .context = dag.software.context};
  const Bytes left = dag.devices[dag.ranks[rank].device].memory - memory.communicators - memory.context;
  const AllocatorUse allocator =
      replay_allocator(dag, timeline, changes, rank,
                       {.expandable_segments = dag.software.expandable_segments, .capacity = std::max<Bytes>(left, 0)});
  memory.allocated = allocator.allocated;
  memory.reserved = allocator.reserved;
  memory.retries = allocator.retries;
  return memory;
}

}  // namespace tandem::studies
