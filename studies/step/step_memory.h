#pragma once

#include <optional>
#include <vector>

#include "runtime/analysis/memory.h"
#include "runtime/analysis/memory_origins.h"
#include "runtime/analysis/memory_over_time.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "studies/step/device_memory.h"

namespace tandem::studies {

/// What a step's ranks take of their GPUs.
struct StepMemory {
  std::vector<MemoryUse> by_stage;  ///< of the fullest ranks
  /// Of the rank whose device() is largest, among those that are fullest in their pipeline stage and within a twentieth of the
  /// fullest of all; `allocated` is the largest of theirs. Two steps of each are played through the allocator; it has what NCCL
  /// and CUDA leave of the GPU. Nothing where the replay has nothing (allocator_replay.h).
  std::optional<DeviceMemory> device;
  std::vector<MemoryOverTime> over_time;  ///< of these ranks, where it was asked for
};

/// `origins`: the DAG's.
StepMemory step_memory(const Dag& dag, const Timeline& timeline, const MemoryOrigins& origins, bool over_time);

}  // namespace tandem::studies
