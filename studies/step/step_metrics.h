#pragma once

#include <cstdint>
#include <vector>

#include "runtime/analysis/overlap.h"
#include "runtime/analysis/traffic.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::studies {

struct GraphFacts;

/// What plans are compared by, beside times and memory. Per rank and step: the mean over all ranks of the world, and over the
/// steps of the DAG.
struct StepMetrics {
  std::int64_t parameters = 0;         ///< of the model
  std::int64_t active_parameters = 0;  ///< that one token passes
  AxisValues sent{};                   ///< bytes, by axis
  CommunicationOverlap overlap;
  /// Of matrix products and attention, recompute included.
  Flops flops = 0;
  /// Bytes that kernels read from and write to the GPU's memory at least: each operand once. What a framework does not fuse and
  /// what communication moves come on top.
  double memory_traffic = 0;
  double ridge = 0;  ///< FLOPs per byte from which on a kernel is bound by arithmetic: peak over the bandwidth of the memory
  std::vector<LayerTraffic> layers;

  /// FLOPs per byte of memory traffic.
  double intensity() const { return flops / memory_traffic; }
  double all_sent() const;
};

StepMetrics step_metrics(const Dag& dag, const Timeline& timeline, const GraphFacts& graph, DType precision);

/// `a_weight` times `a` and `b_weight` times `b`, which are steps of one scenario; the layers keep what `b` keeps.
StepMetrics weighted_sum(const StepMetrics& a, double a_weight, const StepMetrics& b, double b_weight);

}  // namespace tandem::studies
