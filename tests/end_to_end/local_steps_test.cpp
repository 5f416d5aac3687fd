// Local SGD: replicas that take steps alone and then average give the mean of as many unsharded runs; what that saves.

#include <gtest/gtest.h>

#include "scenarios/lowering/lower.h"
#include "studies/step/executed_step.h"
#include "studies/step/simulated_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::local_steps_test {
namespace {

const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 ";

Scenario tiny_local(int sync_every, const std::string& overrides) {
  return tiny_cluster(words("parallelism.zero=0 training.sync_every=" + std::to_string(sync_every) + " " + overrides));
}

class LocalSteps : public testing::TestWithParam<std::string> {};

// Two or three steps of fp32 sums in another order: each adds what one does, see equivalence_test.cpp.
TEST_P(LocalSteps, AverageTheUnshardedRunsOfTheReplicas) {
  EXPECT_LT(largest_difference(tiny_local(2, GetParam())), 2e-5);
  EXPECT_LT(largest_difference(tiny_local(3, GetParam())), 3e-5);
}

TEST_P(LocalSteps, FoldToTheSameTimes) {
  EXPECT_GE(expect_equal_when_folded(tiny_local(4, GetParam() + " cluster.fabric.oversubscription=[1,2,4]")), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Dense, LocalSteps,
    testing::Values("parallelism.dp=2", "parallelism.dp=4 training.bucket_MB=0.004", "parallelism.dp=2 training.overlap.dp=false",
                    "parallelism.dp=1 parallelism.tp=2", "parallelism.dp=2 parallelism.tp=2",
                    "parallelism.dp=2 parallelism.tp=2 parallelism.sp=true training.micro_batch=2",
                    "parallelism.dp=2 parallelism.pp=2 training.precision=fp8", "parallelism.dp=2 parallelism.cp=2",
                    "parallelism.dp=2 parallelism.cp=2 training.grad_compression=2 training.bucket_MB=0.01",
                    "parallelism.dp=2 parallelism.cp=2 parallelism.tp=2 parallelism.sp=true parallelism.pp=2 "
                    "parallelism.order=[dp,pp,tp,cp,ep]",
                    "parallelism.dp=2 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b "
                    "model.tied_embeddings=true",
                    "parallelism.dp=2 parallelism.pp=2 training.schedule=zb-h1 training.recompute=full",
                    "parallelism.dp=2 parallelism.pp=2 parallelism.vpp=2 training.schedule=zb-v model.tied_embeddings=true",
                    "parallelism.dp=2 parallelism.pp=2 training.schedule=dualpipe model.mtp_depth=1"));

INSTANTIATE_TEST_SUITE_P(
    Experts, LocalSteps,
    testing::Values(experts + "parallelism.dp=2", experts + "parallelism.dp=2 parallelism.cp=2 parallelism.ep=2",
                    experts + "parallelism.dp=2 parallelism.cp=4 parallelism.ep=2 model.moe.balance_loss=3",
                    experts + "parallelism.dp=2 parallelism.tp=2 parallelism.sp=true parallelism.ep=2 parallelism.cp=2 "
                              "parallelism.order=[tp,dp,cp,ep,pp] model.moe.capacity_factor=1",
                    experts + "parallelism.dp=2 parallelism.ep=2 parallelism.expert_axis=own",
                    experts +
                        "parallelism.dp=2 parallelism.ep=2 parallelism.expert_axis=own parallelism.tp=2 parallelism.sp=true "
                        "parallelism.etp=2 parallelism.pp=2 parallelism.order=[ep,tp,dp,pp,cp]"));

// A replica's weights are some learning rates (1e-3) away from the others' after three steps.
TEST(LocalSteps, WithoutTheAverageShows) {
  const Scenario scenario = tiny_local(3, "parallelism.dp=2 parallelism.tp=2");
  ExecutedStep steps(scenario, "test", {}, {.count = 3, .averages = false});
  steps.execute();
  EXPECT_GT(compare_with_unsharded(steps, scenario).largest(), 1e-4);
}

bool same_tasks(const Dag& a, const Dag& b) {
  if (a.tasks.size() != b.tasks.size() || a.buffers.size() != b.buffers.size()) return false;
  for (TaskId id = 0; id < a.tasks.size(); ++id) {
    const Task &s = a.tasks[id], &t = b.tasks[id];
    if (s.op != t.op || s.stream != t.stream || s.rank != t.rank || a.name_of_task(id) != b.name_of_task(id)) return false;
    if (a.attributes[s.attributes] != b.attributes[t.attributes] || s.group != t.group) return false;
    for (std::size_t i = 0; i < a.operands_of(id).size(); ++i)
      if (a.operands_of(id)[i].buffer != b.operands_of(id)[i].buffer) return false;
  }
  return true;
}

TEST(LocalSteps, OneIsPlainDataParallelism) {
  const std::string mesh = "parallelism.zero=0 parallelism.dp=2 parallelism.tp=2";
  const auto lowered = [](const Scenario& scenario) { return lower(scenario, make_world(scenario, false), period_of(scenario)); };
  const Dag plain = lowered(tiny_cluster(words(mesh)));
  EXPECT_TRUE(same_tasks(lowered(tiny_local(1, mesh)), plain));
  EXPECT_FALSE(same_tasks(lowered(tiny_local(2, mesh)), plain));
}

// The tiny model's parameters, see volumes_test.cpp; master copies are of fp32 whatever the precision.
constexpr std::int64_t parameters = 2 * 96 * 32 + 4 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32) + 32;

TEST(LocalSteps, ExchangeTheWeightsOnceInAPeriod) {
  const Scenario scenario = tiny_local(3, "parallelism.dp=4 training.precision=bf16");
  auto volumes = volumes_of(lower(scenario, make_world(scenario, false), period_of(scenario)), 0);
  EXPECT_EQ(volumes.size(), 1U);
  EXPECT_EQ(volumes["all_reduce dp optimizer"], (Volume{1, parameters * 4}));
}

TEST(LocalSteps, ReduceGradientsInsideTheReplicaInEachStep) {
  const Scenario scenario = tiny_local(3, "parallelism.dp=2 parallelism.cp=2");
  auto volumes = volumes_of(lower(scenario, make_world(scenario, false), period_of(scenario)), 0);
  EXPECT_EQ(volumes["all_reduce dp backward-weight"], (Volume{3, 3 * parameters * 4}));
  EXPECT_EQ(volumes["all_reduce dp optimizer"], (Volume{1, parameters * 4}));
}

StepResult simulated(const Scenario& scenario) { return simulate_step(scenario, true).result; }

TEST(LocalSteps, LastTheMeanOfTheirPeriod) {
  const StepResult period = simulated(tiny_local(500,
                                                 "parallelism.dp=4 parallelism.pp=2 cluster.gpus_per_node=2 "
                                                 "cluster.nics_per_node=2"));
  const auto [local, sync] = period.step_kinds.value();
  EXPECT_GT(sync, local);
  EXPECT_NEAR(period.step_time, (499 * local + sync) / 500, 1e-12 * sync);
  EXPECT_NEAR(period.parts.total(), period.step_time, 1e-9 * period.step_time);
  for (const StageTime& stage : period.stage_times) EXPECT_NEAR(stage.parts.total(), period.step_time, 1e-9 * period.step_time);
  Seconds kernels = 0;
  for (const KindTime& kind : period.kinds) {
    if (!kind.name.ends_with(")")) kernels += kind.time;
  }
  EXPECT_NEAR(kernels, period.parts.compute() + period.parts.optimizer(), 1e-9 * period.step_time);
  EXPECT_LE(period.lower_bound, period.step_time);
  EXPECT_GE(period.upper_bound, period.step_time);
}

TEST(LocalSteps, SaveCommunication) {
  const std::string slow = "parallelism.dp=4 cluster.gpus_per_node=1 cluster.nics_per_node=1 cluster.nic_gbps=1";
  const Seconds each = simulated(tiny_local(1, slow)).step_time;
  const Seconds fourth = simulated(tiny_local(4, slow)).step_time;
  EXPECT_LT(fourth, each);
  EXPECT_LT(simulated(tiny_local(500, slow)).step_time, fourth);
}

/// Steps are of one length then, but for casting the mean to the weights. The layers are so large that the latencies of NCCL,
/// which remain, do not show.
TEST(LocalSteps, SaveNothingWhereCommunicationIsFree) {
  const std::string free =
      "parallelism.dp=4 training.precision=bf16 training.sequence=8192 model.layers=2 model.hidden=8192 model.ffn=32768 "
      "cluster.nvlink_GBps=1e6 cluster.nic_gbps=1e6 cluster.nvlink_latency_us=0 cluster.nic_latency_us=0 "
      "cluster.switch_latency_us=0";
  const Seconds each = simulated(tiny_local(1, free)).step_time;
  const Seconds tolerance = 1e-3 * each;
  for (const int sync_every : {2, 500}) {
    const SimulatedStep step = simulate_step(tiny_local(sync_every, free), true);
    const auto [local, sync] = step.result.step_kinds.value();
    EXPECT_NEAR(local, each, tolerance);
    Seconds casts = 0;
    for (TaskId id = 0; id < step.dag.tasks.size(); ++id) {
      if (step.dag.name_of_task(id) == "averaged weights") casts += step.timeline.duration(id);
    }
    EXPECT_GT(casts, 2 * tolerance);
    EXPECT_NEAR(sync, local + casts, tolerance);
  }
}

}  // namespace
}  // namespace tandem::studies::local_steps_test
