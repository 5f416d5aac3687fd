#include "studies/step/step_memory.h"

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
/// whose memory is asked for unless a fuller one comes are played while their changes are there, where of a stage so few can come
/// that it takes no longer.
class DeviceMemories {
 public:
  explicit DeviceMemories(const MemoryChanges& changes)
      : dag_(changes.dag()), changes_(changes), replay_(changes), known_(dag_.ranks.size()) {
    for (const Rank& rank : dag_.ranks) ++ranks_of_stage_[rank.pp];
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
  std::map<std::int32_t, Bytes> most_of_stage_;                    ///< likewise
  std::map<Holding, RankIndex> first_;                             ///< of those that do the same
  std::vector<std::optional<std::optional<DeviceMemory>>> known_;  ///< by rank

  bool may_be_asked_for(const MemoryUse& use) {
    // Of four in any order, two are fuller than all before them.
    constexpr std::size_t few = 4;
    const std::int32_t stage = dag_.ranks[use.rank].pp;
    if (ranks_of_stage_.at(stage) > few) return false;
    const std::scoped_lock lock(mutex_);
    most_ = std::max(most_, use.peak());
    const auto [most_of_stage, is_first_of_stage] = most_of_stage_.try_emplace(stage, use.peak());
    if (!is_first_of_stage && use.peak() <= most_of_stage->second) return false;
    most_of_stage->second = use.peak();
    if (is_far_below(use, most_)) return false;
    const auto [first, is_new] = first_.try_emplace(holding_of(use), use.rank);
    if (!is_new && first->second < use.rank) return false;
    first->second = use.rank;
    return true;
  }

  std::optional<DeviceMemory> played(RankIndex rank, std::vector<MemoryChange> changes) const {
    DeviceMemory memory{.communicators = sim::nccl_memory(dag_, changes_.origins().tasks, rank),
                        .context = dag_.software.context};
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

/// The memory over time of the fullest rank of each stage, of those that it is told of: made while their changes are there.
class FullestOverTime {
 public:
  explicit FullestOverTime(const MemoryChanges& changes) : dag_(changes.dag()), of_rank_(changes) {}

  /// Several threads may tell it of ranks.
  void note(const MemoryUse& use, std::vector<MemoryChange> changes) {
    const auto is_fuller_than = [&](const MemoryUse& other) {
      return use.peak() > other.peak() || (use.peak() == other.peak() && use.rank <= other.rank);
    };
    std::vector<std::int32_t> fills;  // stages, so far
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [stage, ranks] : dag_.ranks[use.rank].by_stage(dag_.info.stages)) {
        if (ranks == 0) continue;
        const auto [fullest, is_first] = fullest_.try_emplace(stage, use);
        if (!is_first && !is_fuller_than(fullest->second)) continue;
        fullest->second = use;
        fills.push_back(stage);
      }
    }
    if (fills.empty()) return;
    MemoryOverTime memory = of_rank_.of(use, std::move(changes));
    const std::scoped_lock lock(mutex_);
    for (const std::int32_t stage : fills) {
      memory.stage = stage;
      if (fullest_.at(stage).rank == use.rank) over_time_[stage] = memory;
    }
  }

  /// In the order of stages.
  std::vector<MemoryOverTime> take() {
    std::vector<MemoryOverTime> all;
    for (auto& [stage, memory] : over_time_) all.push_back(std::move(memory));
    return all;
  }

 private:
  const Dag& dag_;
  const MemoriesOverTime of_rank_;
  std::mutex mutex_;
  std::map<std::int32_t, MemoryUse> fullest_;
  std::map<std::int32_t, MemoryOverTime> over_time_;
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

StepMemory step_memory(const Dag& dag, const Timeline& timeline, const MemoryOrigins& origins, bool over_time) {
  const MemoryChanges changes(dag, timeline, origins);
  const MemoryUses uses(changes);
  DeviceMemories memories(changes);
  FullestOverTime fullest_over_time(changes);
  std::vector<MemoryUse> by_rank(dag.ranks.size());
  in_parallel(by_rank.size(), [&](std::size_t i) {
    const auto rank = static_cast<RankIndex>(i);
    std::vector<MemoryChange> of_rank = changes[rank];
    by_rank[rank] = uses.of(rank, of_rank);
    if (over_time) fullest_over_time.note(by_rank[rank], of_rank);
    memories.note(by_rank[rank], std::move(of_rank));
  });
  StepMemory memory{.by_stage = memory_by_stage(dag, by_rank), .device = {}, .over_time = fullest_over_time.take()};
  memory.device = fullest(memory.by_stage, memories);
  return memory;
}

}  // namespace tandem::studies
