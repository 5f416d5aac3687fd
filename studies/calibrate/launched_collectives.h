#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collective_ladder.h"
#include "runtime/cuda/gpu.h"
#include "runtime/launch/launcher.h"

namespace tandem::studies {

/// What the processes of a launch measured together, one process per GPU.
struct LaunchedCollectives {
  std::unique_ptr<Gpu> gpu;  ///< of this process
  std::string device;        ///< "16 x NVIDIA H200 on 2 machines of 8"
  std::vector<MeasuredCollective> collectives;
};

struct LaunchedMeasurement {
  Seconds budget = 0;
  std::function<void()> begin = {};                                     ///< called on rank 0 when all processes have joined
  std::function<void(const std::string& what, double share)> progress;  ///< called on rank 0 now and then; `share` of the budget
};

/// Measures collectives among the GPUs of a launch by NCCL, each size on every number of machines and of GPUs on each that
/// `collectives_worth_measuring` names: a ladder (runtime/collective_ladder.h), executed as one CUDA graph by the executor that
/// runs steps. The first run warms up; then it runs again until about `budget` is spent, and once at least. Every process of the
/// launch calls this; only rank 0 returns a result.
///
/// Throws std::runtime_error with the same sentence on all processes; the sentence is what `begin` threw on rank 0, if it threw.
std::optional<LaunchedCollectives> measure_with_others(const Launch& launch, const LaunchedMeasurement& measurement);

/// Returns which GPUs there are and how they lie on machines, in words.
std::string text_of(const std::string& gpu, const MachineRanks& machines);

}  // namespace tandem::studies
