#pragma once

#include "runtime/cuda/gpu.h"
#include "runtime/dag/timeline.h"
#include "runtime/executor.h"

namespace tandem {

struct MeasuredRuns {
  Timeline timeline;    ///< of dated runs
  Seconds undated = 0;  ///< of runs in which nothing recorded when tasks begin and end
};

/// Who else takes part in the runs of a step, and who watches them.
struct RunsWith {
  ControlPlane* control = nullptr;  ///< to other processes, which run the same step as often
  EndedTasks* ended = nullptr;      ///< counts the tasks of the last run
};

/// Runs a step on GPUs as often as it takes to measure one of training: to warm up, without dates of its tasks, and with them,
/// the last two as often as their mean needs (GpuStep::runs_of_mean). Means are those of all these runs, tasks' dates included.
/// Memory holds what one step left of the initial contents.
MeasuredRuns measure_runs(const Dag& dag, GpuStep& step, const RunsWith& with);

}  // namespace tandem
