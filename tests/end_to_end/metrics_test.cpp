// What planners compare plans by, against closed forms; folded = unfolded. b: micro-batch, s: sequence, d: hidden size.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "scenarios/spec/parameter_count.h"
#include "studies/step/simulated_step.h"
#include "studies/step/step_metrics.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::metrics_test {
namespace {

constexpr double fp32 = 4;
constexpr double bsd = 1 * 16 * 32;
constexpr double micro_batches = 8, layers = 4;

StepMetrics metrics_of(const std::string& overrides, bool folded = true) {
  return *simulate_step(tiny_cluster(words(overrides)), folded).result.metrics;
}

double sent_on(const StepMetrics& metrics, Axis axis) { return metrics.sent[static_cast<std::size_t>(axis)]; }
double sent_on(const LayerTraffic& layer, Axis axis) { return layer.sent[static_cast<std::size_t>(axis)]; }

// With n ranks: reduce-scatter (n-1)/n, then all-gather as much.
TEST(SentBytes, AreTheCollectivesOwn) {
  EXPECT_DOUBLE_EQ(sent_bytes(OpKind::all_reduce, 4000, 4), 6000);
  for (const OpKind op : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all})
    EXPECT_DOUBLE_EQ(sent_bytes(op, 4000, 4), 3000);
  EXPECT_DOUBLE_EQ(sent_bytes(OpKind::send, 4000, 2), 4000);
  EXPECT_DOUBLE_EQ(sent_bytes(OpKind::receive, 4000, 2), 0);
  EXPECT_DOUBLE_EQ(sent_bytes(OpKind::barrier, 0, 2), 0);
}

// A layer reduces b s d twice in the forward and twice in the backward; so do the embedding, the head, and the loss three numbers
// of each token. With t ranks each sends 2 (t-1)/t of it.
TEST(Metrics, TensorParallelRanksSendWhatTheyReduce) {
  for (const int tp : {2, 4}) {
    const StepMetrics metrics = metrics_of("parallelism.tp=" + std::to_string(tp));
    const double part = 2 * (tp - 1.0) / tp;
    ASSERT_EQ(metrics.layers.size(), 4U);
    for (const LayerTraffic& layer : metrics.layers) {
      EXPECT_EQ(layer.ranks, tp);
      EXPECT_DOUBLE_EQ(sent_on(layer, Axis::tp), part * micro_batches * 4 * bsd * fp32);
    }
    const double outside = part * micro_batches * (2 * bsd + 3 * 16) * fp32;
    const double norm = sent_on(metrics, Axis::tp) - layers * sent_on(metrics.layers[0], Axis::tp) - outside;
    EXPECT_GE(norm, 0);
    EXPECT_LE(norm, 2 * fp32);  // the gradients' norm is one number
  }
}

// Each of p - 1 boundaries is crossed by b s d in each direction for each micro-batch; mean over p ranks.
TEST(Metrics, PipelineRanksSendActivations) {
  for (const int pp : {2, 4}) {
    const StepMetrics metrics = metrics_of("parallelism.pp=" + std::to_string(pp));
    EXPECT_DOUBLE_EQ(sent_on(metrics, Axis::pp), 2 * (pp - 1.0) / pp * micro_batches * bsd * fp32);
    for (const LayerTraffic& layer : metrics.layers) EXPECT_EQ(layer.ranks, 1);
  }
}

// All parameters' gradients once, and with ZeRO the parameters instead of the second half of the all-reduce.
TEST(Metrics, DataParallelRanksSendGradients) {
  for (const char* zero : {"0", "1"}) {
    const StepMetrics metrics = metrics_of("parallelism.dp=4 parallelism.zero=" + std::string(zero));
    const double expected = 2 * 3 / 4.0 * static_cast<double>(metrics.parameters) * fp32;
    EXPECT_NEAR(sent_on(metrics, Axis::dp), expected, 2 * fp32);  // the gradients' norm
  }
}

// Each token of 16 goes to two experts, three quarters of which are elsewhere, and back; the backward the same way.
TEST(Metrics, ExpertParallelRanksSendChoices) {
  const StepMetrics metrics = metrics_of(
      "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=4 parallelism.ep=4 training.global_batch=4");
  for (const LayerTraffic& layer : metrics.layers) EXPECT_DOUBLE_EQ(sent_on(layer, Axis::ep), 4 * 2 * bsd * fp32 * 3 / 4);
  EXPECT_DOUBLE_EQ(sent_on(metrics, Axis::ep), layers * sent_on(metrics.layers[0], Axis::ep));
}

/// What a rank sends on each axis, counted collective by collective as the volume tests do.
TEST(Metrics, AreWhatTheVolumesAddUpTo) {
  const Scenario scenario = tiny_cluster(
      words("parallelism.tp=2 parallelism.sp=true parallelism.cp=2 parallelism.pp=2 parallelism.dp=2 parallelism.zero=2"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::map<std::string, double> expected;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    for (const auto& [what, volume] : volumes_of(dag, rank)) {
      const std::vector<std::string> names = words(what);  // operation, axis, phase
      const double members = names[1] == "dp" ? 4 : 2;     // gradients are reduced over dp and cp
      const double factor = names[0] == "send"      ? 1
                            : names[0] == "receive" ? 0
                                                    : (names[0] == "all_reduce" ? 2 : 1) * (1 - 1 / members);
      expected[names[1]] += factor * static_cast<double>(volume.bytes) / static_cast<double>(dag.ranks.size());
    }
  }
  const AxisValues sent = sent_by_axis(dag);
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::pp}) {
    EXPECT_NEAR(sent[static_cast<std::size_t>(axis)], expected[std::string(name_of(axis))], 1e-6) << name_of(axis);
    EXPECT_GT(sent[static_cast<std::size_t>(axis)], 0) << name_of(axis);
  }
  EXPECT_NEAR(sent[static_cast<std::size_t>(Axis::dp)], expected["dp"], 0.01 * expected["dp"]);  // the norm is over all ranks
}

/// Bytes of activations that every layer keeps of a micro-batch.
double kept(const std::string& overrides) {
  const StepMetrics metrics = metrics_of(overrides);
  for (const LayerTraffic& layer : metrics.layers) EXPECT_DOUBLE_EQ(layer.kept, metrics.layers[0].kept) << layer.layer;
  return metrics.layers[0].kept;
}

// Of 16 tokens in fp32: the layer's input, the first norm's output, q, k, v and the attention's output (32, 16, 16 and 32 wide)
// with the log-sum-exp of 8 heads; then the sum with the input, the second norm's output, gate and up (96), and their product
// (48).
TEST(Metrics, LayersKeepWhatTheirBackwardReads) {
  const double none = kept("");
  EXPECT_DOUBLE_EQ(none, 16 * fp32 * (32 + 32 + 32 + 16 + 16 + 32 + 8 + 32 + 32 + 96 + 48));
  EXPECT_DOUBLE_EQ(none - kept("training.recompute=[activation]"), 16 * fp32 * 48);
  EXPECT_DOUBLE_EQ(none - kept("training.recompute=[norm]"), 16 * fp32 * 2 * 32);
  EXPECT_DOUBLE_EQ(kept("training.recompute=full"), 16 * fp32 * 32);
  EXPECT_DOUBLE_EQ(kept("parallelism.pp=2"), none);
  EXPECT_DOUBLE_EQ(kept("parallelism.dp=4 parallelism.zero=3"), none);
  EXPECT_DOUBLE_EQ(kept("parallelism.dp=4 parallelism.zero=3 parallelism.reshard_after_forward=false"), none);
  EXPECT_DOUBLE_EQ(kept("training.micro_batch=2"), 2 * none);
  EXPECT_DOUBLE_EQ(kept("parallelism.tp=2 parallelism.sp=true"), none / 2);
}

// One more micro-batch is as many FLOPs and bytes as any other; the optimizer comes once. FLOPs are those of HFU.
TEST(Metrics, IntensityIsThatOfTheKernels) {
  const auto result = [](const char* batch) {
    return simulate_step(tiny_cluster(words(std::string("training.precision=bf16 training.global_batch=") + batch)), true).result;
  };
  const StepResult two = result("2"), three = result("3"), four = result("4");
  EXPECT_DOUBLE_EQ(four.metrics->flops, 2 * two.metrics->flops);
  EXPECT_DOUBLE_EQ(four.metrics->memory_traffic - three.metrics->memory_traffic,
                   three.metrics->memory_traffic - two.metrics->memory_traffic);
  EXPECT_GT(2 * two.metrics->memory_traffic, four.metrics->memory_traffic);
  const double peak = 989.4e12, bandwidth = 3.35e12;  // of an H100, in its preset
  EXPECT_NEAR(two.metrics->ridge, peak / bandwidth, 1e-3 * peak / bandwidth);
  EXPECT_NEAR(two.metrics->flops / two.step_time / peak, two.hfu, 1e-3 * two.hfu);
  EXPECT_DOUBLE_EQ(two.metrics->intensity(), two.metrics->flops / two.metrics->memory_traffic);
}

// A product of m x k and k x n in bf16: 2 m n k FLOPs and 2 (m k + k n + m n) bytes.
TEST(Metrics, IntensityOfAProductIsItsClosedForm) {
  const Scenario scenario = tiny_cluster(words("training.precision=bf16"));
  Dag dag = lower(scenario, make_world(scenario, true));
  const auto product = std::ranges::find_if(dag.tasks, [&](const Task& task) {
    return task.op == OpKind::gemm && task.phase == Phase::forward && dag.names[task.name] == "qkv";
  });
  ASSERT_NE(product, dag.tasks.end());
  const OpCost cost = cost_of(dag, static_cast<TaskId>(product - dag.tasks.begin()));
  const double m = 16, k = 32, n = 64;
  EXPECT_DOUBLE_EQ(cost.flops / static_cast<double>(cost.bytes), 2 * m * n * k / (2 * (m * k + k * n + m * n)));
}

// Mixtral of 8 x 7B: 46.7 B parameters, of which a token passes 12.9 B (Jiang et al. 2024, arXiv 2401.04088, section 1: 47 B and
// 13 B). A dense model has no others.
TEST(Metrics, ActiveParametersAreThoseOfTwoExperts) {
  const auto model = [](const std::string& name) {
    return scenarios::parse_scenario(
               "model: " + name + "\ncluster: {preset: dgx-h100, gpus: 8}\ntraining: {sequence: 64, global_batch: 8}\n", "s.yaml",
               {})
        .model;
  };
  const ModelSpec mixtral = model("mixtral-8x7b");
  EXPECT_NEAR(static_cast<double>(parameter_count(mixtral)), 46.7e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(active_parameter_count(mixtral)), 12.9e9, 0.05e9);
  const std::int64_t experts = 3 * mixtral.hidden * mixtral.moe.ffn * mixtral.layers * (8 - 2);
  EXPECT_EQ(parameter_count(mixtral) - active_parameter_count(mixtral), experts);
  EXPECT_EQ(active_parameter_count(model("llama3-8b")), parameter_count(model("llama3-8b")));
}

void expect_near(double a, double b, const std::string& what) { EXPECT_NEAR(a, b, 1e-9 * std::max(std::abs(a), 1e-9)) << what; }

void expect_same(const StepMetrics& a, const StepMetrics& b, const std::string& of) {
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    expect_near(a.sent[axis], b.sent[axis], of + ", sent");
    expect_near(a.overlap.by_axis[axis].busy, b.overlap.by_axis[axis].busy, of + ", busy");
    expect_near(a.overlap.by_axis[axis].covered, b.overlap.by_axis[axis].covered, of + ", hidden");
  }
  expect_near(a.overlap.all.covered, b.overlap.all.covered, of + ", hidden in all");
  expect_near(a.flops, b.flops, of + ", FLOPs");
  expect_near(a.memory_traffic, b.memory_traffic, of + ", memory traffic");
  expect_near(a.ridge, b.ridge, of + ", ridge");
  ASSERT_EQ(a.layers.size(), b.layers.size()) << of;
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].ranks, b.layers[i].ranks) << of;
    expect_near(a.layers[i].kept, b.layers[i].kept, of + ", kept");
    for (std::size_t axis = 0; axis < axis_count; ++axis) expect_near(a.layers[i].sent[axis], b.layers[i].sent[axis], of);
  }
}

TEST(Metrics, FoldedAreTheUnfolded) {
  for (const std::string plan :
       {"parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=4",
        "parallelism.cp=2 parallelism.dp=8 parallelism.zero=3",
        "parallelism.pp=4 parallelism.vpp=2 parallelism.dp=4 model.layers=8 training.schedule=interleaved-1f1b "
        "training.global_batch=16",
        "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=8 parallelism.ep=4 model.moe.load.zipf=1 "
        "model.moe.first_dense_layers=1",
        "parallelism.dp=8 parallelism.tp=2 faults.slow_gpu.rank=3 faults.slow_gpu.factor=0.5",
        "parallelism.pp=2 parallelism.dp=2 model.layers=8 training.schedule=dualpipe training.global_batch=16"})
    expect_same(metrics_of(plan, true), metrics_of(plan, false), plan);
}

TEST(Metrics, FoldedAreTheUnfoldedOnRandomClusters) {
  for (const RandomCluster& cluster : random_clusters(12, 7, 1)) {
    const StepMetrics folded = *simulate_step(cluster.scenario, true).result.metrics;
    expect_same(folded, *simulate_step(cluster.scenario, false).result.metrics, cluster.text());
  }
}

}  // namespace
}  // namespace tandem::studies::metrics_test
