// Pipeline bubbles against their closed forms (Narayanan et al. 2021, section 2.2), with communication for free and equal stages.

#include <gtest/gtest.h>

#include "runtime/analysis/time_parts.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "tests/end_to_end/tiny.h"

namespace tandem {
namespace {

/// The idle share of the step of a model whose ends (embedding, LM head, optimizer) weigh nothing beside its layers.
double bubble_fraction(int stages, int micro_batches, int chunks, const std::string& schedule) {
  const std::vector<std::string> overrides{
      "model={layers: 64, hidden: 16384, heads: 128, head_dim: 128, kv_heads: 128, ffn: 65536, vocab: 64}",
      "training.sequence=16384",
      "training.precision=bf16",
      "training.global_batch=" + std::to_string(micro_batches),
      "training.schedule=" + schedule,
      "parallelism.pp=" + std::to_string(stages),
      "parallelism.vpp=" + std::to_string(chunks),
      "cluster.nvlink_GBps=1e6",
      "cluster.nic_gbps=1e6",
      "cluster.nvlink_latency_us=0",
      "cluster.nic_latency_us=0",
      "cluster.switch_latency_us=0",
  };
  const Scenario scenario = tiny_cluster(overrides);
  const Dag dag = lower(scenario, make_world(scenario, true));
  const Timeline timeline = simulate(dag).timeline;
  return mean_over_ranks(dag, time_parts(dag, timeline)).bubble / timeline.makespan();
}

TEST(Bubble, OneForwardOneBackward) {
  for (const auto& [p, m] : {std::pair(16, 64), std::pair(4, 8), std::pair(8, 8)}) {
    const double expected = (p - 1.0) / (m + p - 1.0);
    EXPECT_NEAR(bubble_fraction(p, m, 1, "1f1b"), expected, 0.02 * expected) << "p " << p << ", m " << m;
  }
}

TEST(Bubble, GpipeIdlesAsMuch) {
  const double expected = 15.0 / (64 + 15);
  EXPECT_NEAR(bubble_fraction(16, 64, 1, "gpipe"), expected, 0.02 * expected);
}

TEST(Bubble, Interleaved) {
  for (const int v : {2, 4}) {
    const double expected = 15.0 / (v * 64 + 15);
    EXPECT_NEAR(bubble_fraction(16, 64, v, "interleaved-1f1b"), expected, 0.02 * expected) << "v " << v;
  }
}

}  // namespace
}  // namespace tandem
