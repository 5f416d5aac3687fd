// Pipeline schedules beyond 1F1B: the same step as the unsharded one, the same times folded and unfolded, and the bubbles of
// their papers.

#include <gtest/gtest.h>

#include "runtime/analysis/time_parts.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem {
namespace {

const std::string zb_h1 = "training.schedule=zb-h1 ";

class PipelineSchedules : public testing::TestWithParam<std::string> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(PipelineSchedules, AreTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(GetParam()))), 1e-5); }

INSTANTIATE_TEST_SUITE_P(ZeroBubbleH1, PipelineSchedules,
                         testing::Values(zb_h1 + "parallelism.pp=2", zb_h1 + "parallelism.pp=4",
                                         zb_h1 + "parallelism.pp=4 training.overlap.pp=false",
                                         zb_h1 + "parallelism.pp=4 training.global_batch=2",
                                         zb_h1 + "parallelism.pp=2 parallelism.tp=2", zb_h1 + "parallelism.pp=1 parallelism.tp=2",
                                         zb_h1 + "parallelism.pp=4 parallelism.tp=2 parallelism.sp=true parallelism.dp=2",
                                         zb_h1 + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.004",
                                         zb_h1 + "parallelism.pp=2 parallelism.dp=2 parallelism.zero=2 training.bucket_MB=0.001",
                                         zb_h1 + "parallelism.pp=4 parallelism.dp=2 training.overlap.dp=false",
                                         zb_h1 + "parallelism.pp=2 parallelism.dp=2 model.tied_embeddings=true",
                                         zb_h1 + "parallelism.pp=2 parallelism.tp=2 parallelism.sp=true "
                                                 "training.recompute=selective",
                                         zb_h1 + "parallelism.pp=4 training.recompute=full"));

TEST(PipelineSchedulesFolded, HaveTheTimesOfTheUnfolded) {
  for (const std::string& schedule : {zb_h1}) {
    for (const char* more : {"", "training.overlap.pp=false ", "faults={slow_gpu: {rank: 5, factor: 0.5}}"}) {
      const std::string mesh = "parallelism.tp=2 parallelism.sp=true parallelism.pp=4 parallelism.dp=2 training.global_batch=16 ";
      SCOPED_TRACE(schedule + more);
      std::vector<std::string> overrides = words(schedule + mesh);
      if (*more != '\0') overrides.emplace_back(more);
      expect_equal_when_folded(tiny_cluster(overrides));
    }
  }
}

/// Compute time of one micro-batch on the second stage, which holds neither end of the model.
struct ActionTimes {
  Seconds forward = 0, backward_input = 0, backward_weight = 0;
};

struct Measured {
  Seconds bubble = 0;
  ActionTimes times;
};

/// A pipeline whose communication is free and whose ends (embedding, LM head, optimizer) weigh nothing beside its layers.
Measured measure(int stages, int micro_batches, const std::string& schedule) {
  const Scenario scenario = tiny_cluster({
      "model={layers: 64, hidden: 16384, heads: 128, head_dim: 128, kv_heads: 128, ffn: 65536, vocab: 64}",
      "training.sequence=16384",
      "training.precision=bf16",
      "training.global_batch=" + std::to_string(micro_batches),
      "training.schedule=" + schedule,
      "parallelism.pp=" + std::to_string(stages),
      "cluster.nvlink_GBps=1e6",
      "cluster.nic_gbps=1e6",
      "cluster.nvlink_latency_us=0",
      "cluster.nic_latency_us=0",
      "cluster.switch_latency_us=0",
  });
  const Dag dag = lower(scenario, make_world(scenario, true));
  const Timeline timeline = simulate(dag).timeline;
  Measured measured;
  measured.bubble = mean_over_ranks(dag, time_parts(dag, timeline)).bubble;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    // Not micro-batch 0, before whose backward gradients are cleared.
    if (dag.ranks[task.rank].pp != 1 || task.micro_batch != 1 || task.stream != Stream::compute) continue;
    const Seconds duration = timeline.end[id] - timeline.start[id];
    if (task.phase == Phase::forward) measured.times.forward += duration;
    if (task.phase == Phase::backward_input) measured.times.backward_input += duration;
    if (task.phase == Phase::backward_weight) measured.times.backward_weight += duration;
  }
  return measured;
}

// Qi et al. 2023 (arXiv 2401.10241), table 2: 1F1B idles (p - 1)(F + B + W), ZB-H1 (p - 1)(F + B - W), with B the time of the
// gradient of the inputs and W that of the weights.
TEST(PipelineBubbles, ZeroBubbleH1) {
  for (const auto& [p, m] : {std::pair(4, 8), std::pair(8, 32)}) {
    const Measured plain = measure(p, m, "1f1b");
    const Measured split = measure(p, m, "zb-h1");
    const ActionTimes t = split.times;
    EXPECT_GT(t.backward_weight, 0.5 * t.forward);
    const Seconds expected = (p - 1) * (t.forward + t.backward_input - t.backward_weight);
    EXPECT_NEAR(split.bubble, expected, 0.02 * expected) << "p " << p << ", m " << m;
    const Seconds of_plain = (p - 1) * (t.forward + t.backward_input + t.backward_weight);
    EXPECT_NEAR(plain.bubble, of_plain, 0.02 * of_plain) << "p " << p << ", m " << m;
  }
}

}  // namespace
}  // namespace tandem
