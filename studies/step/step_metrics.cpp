#include "studies/step/step_metrics.h"

#include <numeric>

#include "studies/step/graph_facts.h"

namespace tandem::studies {
namespace {

double count_ranks(const Dag& dag) {
  double ranks = 0;
  for (const Rank& rank : dag.ranks) ranks += rank.count;
  return ranks;
}

/// Of the mean GPU.
double ridge_of(const Dag& dag, DType precision) {
  FlopsPerSecond peak = 0;
  BytesPerSecond bandwidth = 0;
  for (const Rank& rank : dag.ranks) {
    const Device& device = dag.devices[rank.device];
    peak += rank.count * device.peak[static_cast<std::size_t>(precision)];
    bandwidth += rank.count * device.memory_bandwidth;
  }
  return peak / bandwidth;
}

CommunicationOverlap::Times sum_of(const CommunicationOverlap::Times& a, double a_weight, const CommunicationOverlap::Times& b,
                                   double b_weight) {
  return {a_weight * a.busy + b_weight * b.busy, a_weight * a.covered + b_weight * b.covered};
}

AxisValues sum_of(const AxisValues& a, double a_weight, const AxisValues& b, double b_weight) {
  AxisValues sum{};
  for (std::size_t axis = 0; axis < sum.size(); ++axis) sum[axis] = a_weight * a[axis] + b_weight * b[axis];
  return sum;
}

}  // namespace

double StepMetrics::all_sent() const { return std::accumulate(sent.begin(), sent.end(), 0.0); }

StepMetrics step_metrics(const Dag& dag, const Timeline& timeline, const GraphFacts& graph, DType precision) {
  StepMetrics metrics;
  const double share = 1 / (count_ranks(dag) * dag.info.steps);
  metrics.flops = share * graph.work.flops;
  metrics.memory_traffic = share * graph.work.memory_traffic;
  metrics.parameters = dag.info.parameters;
  metrics.active_parameters = dag.info.active_parameters;
  metrics.sent = graph.sent;
  metrics.overlap = communication_overlap(dag, timeline);
  metrics.ridge = ridge_of(dag, precision);
  metrics.layers = graph.layers;
  return metrics;
}

StepMetrics weighted_sum(const StepMetrics& a, double a_weight, const StepMetrics& b, double b_weight) {
  StepMetrics sum = b;
  sum.sent = sum_of(a.sent, a_weight, b.sent, b_weight);
  sum.overlap.all = sum_of(a.overlap.all, a_weight, b.overlap.all, b_weight);
  for (std::size_t axis = 0; axis < axis_count; ++axis)
    sum.overlap.by_axis[axis] = sum_of(a.overlap.by_axis[axis], a_weight, b.overlap.by_axis[axis], b_weight);
  sum.flops = a_weight * a.flops + b_weight * b.flops;
  sum.memory_traffic = a_weight * a.memory_traffic + b_weight * b.memory_traffic;
  for (std::size_t layer = 0; layer < sum.layers.size(); ++layer)
    sum.layers[layer].sent = sum_of(a.layers[layer].sent, a_weight, b.layers[layer].sent, b_weight);
  return sum;
}

}  // namespace tandem::studies
