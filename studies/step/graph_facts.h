#pragma once

#include <vector>

#include "runtime/analysis/memory_origins.h"
#include "runtime/analysis/predecessors.h"
#include "runtime/analysis/traffic.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "sim/kernel_times.h"
#include "sim/serial_replay.h"

namespace tandem::studies {

/// What the kernels of all ranks of the world do in all steps of the DAG.
struct KernelWork {
  Flops flops = 0;
  double memory_traffic = 0;  ///< bytes
};

/// What of a result follows from the graph alone, and from how often its tasks happen: so it can be found while the step is
/// simulated.
struct GraphFacts {
  /// `timeline`: says how often; each task happens once without one. The DAG must outlive this.
  explicit GraphFacts(const Dag& dag, const Timeline& timeline = {});

  sim::KernelTimes alone;
  Seconds lower_bound = 0;   ///< of all steps of the DAG
  sim::SerialReplay replay;  ///< for the upper bound
  KernelWork work;
  AxisValues sent{};                 ///< see `sent_by_axis`
  std::vector<LayerTraffic> layers;  ///< see `traffic_by_layer`
  Predecessors awaited;              ///< see `awaited_by`
  MemoryOrigins memory;
};

}  // namespace tandem::studies
