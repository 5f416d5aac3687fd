// What a rank communicates in a step, counted from the DAG, against closed forms. b: micro-batch, s: sequence, d: hidden size.

#include "tests/end_to_end/volumes.h"

#include <gtest/gtest.h>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::volumes_test {
namespace {

constexpr Bytes fp32 = 4;

Dag lowered(const std::string& overrides) {
  const Scenario scenario = tiny_cluster(words(overrides));
  return lower(scenario, make_world(scenario, false));
}

TEST(Volumes, TensorParallelReducesTwiceALayerAndPass) {
  // Four layers, eight micro-batches, 16 x 1 tokens of width 32. Forward: after the attention's and the MLP's row-parallel
  // product, and after the embedding. Backward: before the input of both column-parallel pairs and of the LM head.
  const Dag dag = lowered("parallelism.tp=2");
  const auto volumes = volumes_of(dag, 0);
  const Bytes bsd = 1 * 16 * 32 * fp32;
  const Bytes per_token = 16 * fp32;  // the loss: maximum, sum and target of every token
  EXPECT_EQ(volumes.at("all_reduce tp forward"), (Volume{8 * (2 * 4 + 1 + 3), 8 * ((2 * 4 + 1) * bsd + 3 * per_token)}));
  EXPECT_EQ(volumes.at("all_reduce tp backward-input"), (Volume{8 * (2 * 4 + 1), 8 * (2 * 4 + 1) * bsd}));
}

TEST(Volumes, ScatterAndGatherSendAPartAndGatherItAtTheOtherEnd) {
  // Eight micro-batches, two stages: each tensor-parallel rank sends a quarter of 16 x 1 x 32, and the stage gathers all of it.
  const Dag dag = lowered("parallelism.tp=4 parallelism.pp=2 parallelism.scatter_gather=true");
  const Dag whole = lowered("parallelism.tp=4 parallelism.pp=2");
  const Bytes bsd = 1 * 16 * 32 * fp32;
  const RankIndex first = 0, second = 4;
  EXPECT_EQ(volumes_of(dag, first).at("send pp forward"), (Volume{8, 8 * bsd / 4}));
  EXPECT_EQ(volumes_of(dag, second).at("receive pp forward"), (Volume{8, 8 * bsd / 4}));
  EXPECT_EQ(volumes_of(dag, second).at("all_gather tp forward"), (Volume{8, 8 * bsd}));
  EXPECT_EQ(volumes_of(dag, first).at("all_gather tp backward-input"), (Volume{8, 8 * bsd}));
  EXPECT_EQ(volumes_of(whole, first).at("send pp forward"), (Volume{8, 8 * bsd}));
  EXPECT_EQ(volumes_of(whole, second).count("all_gather tp forward"), 0U);
}

TEST(Volumes, SequenceParallelGathersAndScattersAsMuch) {
  // An all-reduce is a reduce-scatter and an all-gather: the same vector crosses. The backward of a column-parallel layer gathers
  // its input once more for the weight gradient.
  const Dag dag = lowered("parallelism.tp=2 parallelism.sp=true");
  const auto volumes = volumes_of(dag, 0);
  const Bytes bsd = 1 * 16 * 32 * fp32;
  const std::size_t per_pass = 8 * (2 * 4 + 1);
  EXPECT_EQ(volumes.at("all_gather tp forward"), (Volume{per_pass, 8 * (2 * 4 + 1) * bsd}));
  EXPECT_EQ(volumes.at("reduce_scatter tp forward"), (Volume{per_pass, 8 * (2 * 4 + 1) * bsd}));
  EXPECT_EQ(volumes.at("reduce_scatter tp backward-input"), (Volume{per_pass, 8 * (2 * 4 + 1) * bsd}));
  EXPECT_EQ(volumes.at("all_gather tp backward-input"), (Volume{2 * per_pass, 2 * 8 * (2 * 4 + 1) * bsd}));
}

// b (s/cp) d, of which each rank sends its part with sp.
TEST(Volumes, PipelineSendsOneActivationPerBoundaryAndMicroBatch) {
  for (const std::string mesh : {"parallelism.tp=2", "parallelism.tp=2 parallelism.sp=true", "parallelism.cp=2",
                                 "parallelism.tp=2 parallelism.sp=true parallelism.cp=2"}) {
    const Scenario scenario = tiny_cluster(words("parallelism.pp=2 " + mesh));
    const Dag dag = lower(scenario, make_world(scenario, false));
    const ParallelismSpec& p = scenario.parallelism;
    const Bytes payload = 1 * (16 / p.cp) * 32 * fp32 / (p.sp ? p.tp : 1);
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      const auto volumes = volumes_of(dag, rank);
      const bool first = dag.ranks[rank].pp == 0;
      const Volume all{8, 8 * payload};
      EXPECT_EQ(volumes.at(first ? "send pp forward" : "receive pp forward"), all) << mesh;
      EXPECT_EQ(volumes.at(first ? "receive pp backward-input" : "send pp backward-input"), all) << mesh;
      EXPECT_EQ(volumes.count(first ? "receive pp forward" : "send pp forward"), 0U) << mesh;
    }
  }
}

/// Parameters of the tiny model: two tables of 96 x 32; per layer q and output 32 x 32 each, k and v 16 x 32 each, gate, up and
/// down 48 x 32 each, two norms of 32; the final norm.
constexpr std::int64_t parameters = 2 * 96 * 32 + 4 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32) + 32;

TEST(Volumes, DataParallelReducesEveryGradientOnce) {
  const Dag plain = lowered("parallelism.dp=4 parallelism.zero=0");
  const auto reduced = volumes_of(plain, 0);
  EXPECT_EQ(reduced.at("all_reduce dp backward-weight"), (Volume{1, parameters * fp32}));
  for (const char* zero : {"1", "2"}) {
    const Dag sharded = lowered("parallelism.dp=4 parallelism.zero=" + std::string(zero));
    const auto volumes = volumes_of(sharded, 0);
    EXPECT_EQ(parameters % 4, 0);  // no padding
    EXPECT_EQ(volumes.at("reduce_scatter dp backward-weight"), (Volume{1, parameters * fp32}));
    EXPECT_EQ(volumes.at("all_gather dp optimizer"), (Volume{1, parameters * fp32}));
  }
}

TEST(Volumes, WhatIsSentIsReceived) {
  const Dag dag = lowered(
      "parallelism.tp=2 parallelism.pp=2 parallelism.vpp=2 parallelism.dp=2 training.schedule=interleaved-1f1b model.layers=8");
  Bytes sent = 0;
  Bytes received = 0;
  for (const Task& task : dag.tasks) {
    if (task.op == OpKind::send) sent += dag.groups[task.group].bytes;
    if (task.op == OpKind::receive) received += dag.groups[task.group].bytes;
  }
  EXPECT_GT(sent, 0);
  EXPECT_EQ(sent, received);
}

}  // namespace
}  // namespace tandem::studies::volumes_test
