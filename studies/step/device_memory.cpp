#include "studies/step/device_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/analysis/allocator_replay.h"
#include "runtime/analysis/memory_changes.h"
#include "runtime/base/parallel.h"
#include "sim/nccl_memory.h"

namespace tandem::studies {
namespace {

/// Ranks of which this is the same do the same.
using Holding = std::tuple<Bytes, Bytes, Bytes, std::size_t>;

Holding holding_of(const MemoryUse& use) { return {use.peak(), use.parameters, use.activations, use.changes}; }

bool is_far_below(const MemoryUse& use, Bytes most) {
  constexpr double near = 0.95;
  return static_cast<double>(use.peak()) < near * static_cast<double>(most);
}

/// The device memory of ranks. To make a rank's changes takes as long as to play them, and they are too many to keep. So those
/// whose memory is sure to be asked for unless a fuller one comes are played while their changes are there.
class DeviceMemories {
 public:
  DeviceMemories(const Dag& dag, const Timeline& timeline, const MemoryChanges& changes)
      : dag_(dag), changes_(changes), replay_(dag, timeline, changes), known_(dag.ranks.size()) {
    for (const Rank& rank : dag.ranks) ++ranks_of_stage_[rank.pp];
  }

  /// Several threads may tell it of ranks.
  void note(const MemoryUse& use, std::vector<MemoryChange> changes) {
    if (may_be_asked_for(use)) known_[use.rank] = played(use.rank, std::move(changes));
  }

  std::optional<DeviceMemory> of(RankIndex rank) const { return known_[rank] ? *known_[rank] : played(rank, changes_[rank]); }

 private:
  const Dag& dag_;
  const MemoryChanges& changes_;
  const AllocatorReplay replay_;
  std::map<std::int32_t, std::size_t> ranks_of_stage_;
  std::mutex mutex_;
  Bytes most_ = 0;                                                 ///< of those that were noted
  std::map<Holding, RankIndex> first_;                             ///< of those that do the same
  std::vector<std::optional<std::optional<DeviceMemory>>> known_;  ///< by rank

  bool may_be_asked_for(const MemoryUse& use) {
    if (ranks_of_stage_.at(dag_.ranks[use.rank].pp) > 1) return false;
    const std::scoped_lock lock(mutex_);
    most_ = std::max(most_, use.peak());
    if (is_far_below(use, most_)) return false;
    const auto [first, is_new] = first_.try_emplace(holding_of(use), use.rank);
    if (!is_new && first->second < use.rank) return false;
    first->second = use.rank;
    return true;
  }

  std::optional<DeviceMemory> played(RankIndex rank, std::vector<MemoryChange> changes) const {
    DeviceMemory memory{.communicators = sim::nccl_memory(dag_, rank), .context = dag_.software.context};
    const Bytes left = dag_.devices[dag_.ranks[rank].device].memory - memory.communicators - memory.context;
    const std::optional<AllocatorUse> allocator =
        replay_.of(rank, std::move(changes),
                   {.expandable_segments = dag_.software.expandable_segments, .capacity = std::max<Bytes>(left, 0)});
    if (!allocator) return {};
    memory.allocated = allocator->allocated;
    memory.reserved = allocator->reserved;
    memory.retries = allocator->retries;
    return memory;
  }
};

/// Of these, which are fullest in their stages.
std::optional<DeviceMemory> fullest(std::vector<MemoryUse> uses, const DeviceMemories& memories) {
  Bytes most = 0;
  for (const MemoryUse& use : uses) most = std::max(most, use.peak());
  std::set<Holding> seen;
  std::erase_if(uses, [&](const MemoryUse& use) {
    return use.rank == no_id || is_far_below(use, most) || !seen.insert(holding_of(use)).second;
  });
  std::vector<std::optional<DeviceMemory>> of_stages(uses.size());
  in_parallel(uses.size(), [&](std::size_t i) { of_stages[i] = memories.of(uses[i].rank); });
  DeviceMemory fullest;
  Bytes allocated = 0;
  for (const std::optional<DeviceMemory>& memory : of_stages) {
    if (!memory) return {};
    allocated = std::max(allocated, memory->allocated);
    if (memory->device() > fullest.device()) fullest = *memory;
  }
  fullest.allocated = allocated;
  return fullest;
}

}  // namespace

StepMemory step_memory(const Dag& dag, const Timeline& timeline) {
  const MemoryChanges changes(dag, timeline);
  const MemoryUses uses(dag, timeline, changes);
  DeviceMemories memories(dag, timeline, changes);
  std::vector<MemoryUse> by_rank(dag.ranks.size());
  in_parallel(by_rank.size(), [&](std::size_t i) {
    const auto rank = static_cast<RankIndex>(i);
    std::vector<MemoryChange> of_rank = changes[rank];
    by_rank[rank] = uses.of(rank, of_rank);
    memories.note(by_rank[rank], std::move(of_rank));
  });
  StepMemory memory{.by_stage = memory_by_stage(dag, by_rank), .device = {}};
  memory.device = fullest(memory.by_stage, memories);
  return memory;
}

}  // namespace tandem::studies
