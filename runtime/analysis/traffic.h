#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/analysis/time_parts.h"
#include "runtime/dag/dag.h"

namespace tandem {

using AxisValues = std::array<double, axis_count>;

/// Returns the bytes that a member of a collective of `bytes` (as in `Group`) sends, mean over its `members`: with n of them
///   all-reduce   2 (n-1)/n bytes   all-gather, reduce-scatter, all-to-all, gather, scatter, broadcast, reduce   (n-1)/n bytes
///   send   bytes   receive, barrier   nothing
/// This is what the operation needs, and what rings send (nccl-tests, PERFORMANCE.md); NVLS leaves some of it to the switches,
/// and DeepEP sends a token once to a rank that holds several of its experts.
double sent_bytes(OpKind op, Bytes bytes, std::size_t members);

/// Returns the bytes that a rank sends in a step, by axis: the mean over all ranks of the world and the steps of the DAG. The
/// timeline says how often its tasks run.
AxisValues sent_by_axis(const Dag& dag, const Timeline& timeline = {});

/// The axes on which layers communicate, each for itself. What travels between stages, and in buckets of gradients and weights,
/// belongs to no one layer.
inline constexpr std::array layer_axes{Axis::tp, Axis::cp, Axis::ep};

/// What one layer sends and keeps.
struct LayerTraffic {
  std::int32_t layer = 0;
  std::int64_t ranks = 0;  ///< of the world, that hold it or a part of it
  AxisValues sent{};       ///< bytes that one of them sends for it in a step on `layer_axes`, mean

  /// Bytes of activations that one of them keeps from the forward of a micro-batch for its backward, mean: buffers that forward
  /// tasks wrote, of whichever layer, and that a task of this layer's backward or recompute reads first. Weights that are
  /// gathered (ZeRO-3) do not count.
  double kept = 0;
};

/// Returns all layers of the DAG by their numbers.
std::vector<LayerTraffic> traffic_by_layer(const Dag& dag, const Timeline& timeline = {});

}  // namespace tandem
