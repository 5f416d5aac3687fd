#include "studies/step/device_memory.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "runtime/analysis/allocator_replay.h"
#include "runtime/base/parallel.h"
#include "sim/nccl_memory.h"

namespace tandem::studies {
namespace {

std::optional<DeviceMemory> memory_of(const Dag& dag, const AllocatorReplay& replay, RankIndex rank) {
  DeviceMemory memory{.communicators = sim::nccl_memory(dag, rank), .context = dag.software.context};
  const Bytes left = dag.devices[dag.ranks[rank].device].memory - memory.communicators - memory.context;
  const std::optional<AllocatorUse> allocator =
      replay.of(rank, {.expandable_segments = dag.software.expandable_segments, .capacity = std::max<Bytes>(left, 0)});
  if (!allocator) return {};
  memory.allocated = allocator->allocated;
  memory.reserved = allocator->reserved;
  memory.retries = allocator->retries;
  return memory;
}

}  // namespace

std::optional<DeviceMemory> device_memory(const Dag& dag, const Timeline& timeline, const MemoryChanges& changes,
                                          const std::vector<MemoryUse>& by_rank) {
  constexpr double far_below = 0.95;
  std::vector<RankIndex> ranks = fullest_ranks(dag, by_rank);
  std::erase(ranks, no_id);
  Bytes most = 0;
  for (const RankIndex rank : ranks) most = std::max(most, by_rank[rank].peak());
  const AllocatorReplay replay(dag, timeline, changes);
  std::set<std::tuple<Bytes, Bytes, Bytes, std::size_t>> seen;
  std::erase_if(ranks, [&](RankIndex rank) {
    const MemoryUse& use = by_rank[rank];
    if (static_cast<double>(use.peak()) < far_below * static_cast<double>(most)) return true;
    // Stages that hold the same do the same.
    return !seen.insert({use.peak(), use.parameters, use.activations, use.changes}).second;
  });
  std::vector<std::optional<DeviceMemory>> memories(ranks.size());
  in_parallel(ranks.size(), [&](std::size_t i) { memories[i] = memory_of(dag, replay, ranks[i]); });
  DeviceMemory fullest;
  Bytes allocated = 0;
  for (const std::optional<DeviceMemory>& memory : memories) {
    if (!memory) return {};
    allocated = std::max(allocated, memory->allocated);
    if (memory->device() > fullest.device()) fullest = *memory;
  }
  fullest.allocated = allocated;
  return fullest;
}

}  // namespace tandem::studies
