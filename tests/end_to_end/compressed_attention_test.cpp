// Attention to the last positions and to keys that stand for several before them (DeepSeek-V4): the sharded step is the unsharded
// one, folded or not, and what it computes and holds is what its formulas say.

#include <gtest/gtest.h>

#include <string>

#include "runtime/host/loss.h"
#include "runtime/host/unsharded.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/parameter_count.h"
#include "studies/step/executed_step.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::compressed_attention_test {
namespace {

const std::string attention =
    "model.kv_heads=1 model.head_dim=8 model.window=3 model.compressed_attention.q_rank=12 model.compressed_attention.rope_dim=4 "
    "model.compressed_attention.heavy_ratio=8 model.compressed_attention.sparse_ratio=2 "
    "model.compressed_attention.output_groups=4 model.compressed_attention.output_rank=6 "
    "model.compressed_attention.index_heads=4 model.compressed_attention.index_head_dim=6 "
    "model.compressed_attention.index_top_k=3 model.compressed_attention.index_loss_coefficient=0.5 ";
const std::string kinds =
    "model.layer_types=[sliding_attention,compressed_sparse_attention,heavily_compressed_attention,compressed_sparse_attention] ";
const std::string v4 = attention + kinds + "model.attention_sinks=true ";

class CompressedSteps : public testing::TestWithParam<const char*> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(CompressedSteps, AreTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(v4 + GetParam()))), 3e-5); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, CompressedSteps,
    testing::Values("", "parallelism.tp=2", "parallelism.tp=4 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=full",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=selective",
                    "training.recompute=[norm,attention] training.micro_batch=2", "training.micro_batch=2 parallelism.tp=2",
                    "parallelism.pp=2 training.schedule=zb-h1 parallelism.dp=2 parallelism.zero=1",
                    "parallelism.pp=2 training.schedule=zb-h1 parallelism.tp=2 parallelism.sp=true",
                    "parallelism.dp=2 parallelism.zero=3", "parallelism.dp=4 parallelism.zero=0 training.micro_batch=2",
                    "parallelism.tp=2 training.optimizer=muon", "parallelism.tp=2 parallelism.sp=true training.overlap.tp=true",
                    "model.attention_sinks=false parallelism.tp=2", "model.hyper_connections.streams=2 parallelism.tp=2",
                    "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.hash_layers=1 parallelism.ep=2 "
                    "parallelism.dp=2"));

INSTANTIATE_TEST_SUITE_P(
    Contexts, CompressedSteps,
    testing::Values("parallelism.cp=2 parallelism.cp_method=all-gather",
                    "parallelism.cp=4 parallelism.cp_method=all-gather parallelism.cp_layout=contiguous",
                    "parallelism.cp=2 parallelism.cp_method=all-gather parallelism.tp=2 parallelism.sp=true "
                    "training.recompute=selective training.micro_batch=2",
                    "parallelism.cp=2 parallelism.cp_method=all-gather parallelism.pp=2 training.schedule=zb-h1 parallelism.dp=2 "
                    "parallelism.zero=2"));

const std::string stretched =
    "model.compressed_attention.yarn.factor=4 model.compressed_attention.yarn.original_positions=8 "
    "model.compressed_attention.yarn.beta_fast=2 model.compressed_attention.yarn.beta_slow=0.25 ";

// What predicts further tokens attends to the window alone, beside streams and without.
INSTANTIATE_TEST_SUITE_P(
    FurtherTokens, CompressedSteps,
    testing::Values("model.mtp_depth=1", "model.mtp_depth=2 parallelism.tp=2 parallelism.sp=true parallelism.pp=2",
                    "model.mtp_depth=1 model.hyper_connections.streams=2 parallelism.tp=2 parallelism.pp=2 parallelism.dp=2",
                    "model.mtp_depth=1 parallelism.cp=2 parallelism.cp_method=all-gather training.recompute=full",
                    "model.mtp_depth=1 model.hyper_connections.streams=3 model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 "
                    "model.moe.hash_layers=1 model.moe.capacity_factor=2 model.moe.expert_bias=true "
                    "model.moe.score_function=sigmoid parallelism.ep=2 parallelism.dp=2 parallelism.zero=2"));

TEST(CompressedStep, PredictsFurtherTokensFromTheWindow) {
  const Scenario scenario = tiny_model(words(v4 + "model.mtp_depth=2"));
  for (std::int64_t layer = scenario.model.layers; layer < scenario.model.layers + 2; ++layer)
    EXPECT_EQ(scenario.model.layer_kind(layer).mixer, Mixer::sliding_attention);
  const Dag dag = lower(scenario, make_world(scenario, false));
  const auto further = static_cast<std::int16_t>(scenario.model.layers);
  for (const Task& task : dag.tasks) EXPECT_TRUE(task.op != OpKind::compress_keys || task.layer < further);
}

class StretchedSteps : public testing::TestWithParam<const char*> {};

TEST_P(StretchedSteps, AreTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_model(words(v4 + stretched + GetParam()))), 3e-5);
}

INSTANTIATE_TEST_SUITE_P(Meshes, StretchedSteps,
                         testing::Values("parallelism.tp=2 parallelism.sp=true parallelism.pp=2",
                                         "parallelism.cp=2 parallelism.cp_method=all-gather training.recompute=selective"));

/// Its loss and gradients.
struct Outcome {
  double loss = 0;
  UnshardedTensors gradients;
};
Outcome outcome_of(const std::string& overrides) {
  ExecutedStep step(tiny_model(words(overrides)), "test", {.rounds = false});
  step.execute();
  return {mean_loss(step.memory()), gather_unsharded(step.memory()).gradients};
}

// An indexer that may choose all compressed keys hides none: layers of one ratio with an indexer and without are alike but for
// the overlap of windows, and more choices than there are keys change nothing.
TEST(CompressedStep, OfAllKeysIsAsOfMore) {
  const Outcome all = outcome_of(v4 + "model.compressed_attention.index_top_k=8"),
                more = outcome_of(v4 + "model.compressed_attention.index_top_k=4096");
  EXPECT_EQ(all.loss, more.loss);
  const Outcome few = outcome_of(v4 + "model.compressed_attention.index_top_k=1");
  EXPECT_NE(all.loss, few.loss);
}

// What an indexer learns by goes through its own parameters alone: a larger loss makes their gradients larger, and no others.
TEST(CompressedStep, TrainsItsIndexersApart) {
  const Outcome small = outcome_of(v4), large = outcome_of(v4 + "model.compressed_attention.index_loss_coefficient=2");
  EXPECT_EQ(small.loss, large.loss);
  int of_indexers = 0;
  for (const auto& [name, tensor] : small.gradients) {
    const UnshardedTensor& other = large.gradients.at(name);
    const bool of_indexer = name.find(".index_") != std::string::npos;
    of_indexers += of_indexer ? 1 : 0;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const double expected = (of_indexer ? 4 : 1) * double{tensor.values[i]};
      EXPECT_NEAR(other.values[i], expected, of_indexer ? 1e-5 * std::abs(expected) + 1e-9 : 0.0) << name;
    }
  }
  EXPECT_GT(of_indexers, 0);
}

// Angles of layers with compressed keys are stretched, those of the window alone are not; a factor of 1 stretches none.
TEST(CompressedStep, StretchesTheAnglesOfCompressedKeysAlone) {
  EXPECT_NE(outcome_of(v4).loss, outcome_of(v4 + stretched).loss);
  EXPECT_EQ(outcome_of(v4).loss, outcome_of(v4 + stretched + "model.compressed_attention.yarn.factor=1").loss);
  const Scenario scenario = tiny_model(words(v4 + stretched + "model.mtp_depth=1"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::mla_queries) continue;
    const bool alone = scenario.model.layer_kind(dag.tasks[id].layer).mixer == Mixer::sliding_attention;
    EXPECT_EQ(std::get<MlaHeadsAttributes>(kernel_of(dag, id).attributes).yarn.factor, alone ? 1 : 4);
  }
}

TEST(CompressedStep, HasTheParametersOfTheFormula) {
  for (const std::string model : {"", "model.mtp_depth=1 model.hyper_connections.streams=2 ", "model.attention_sinks=false "}) {
    const Scenario scenario = tiny_model(words(v4 + model));
    const Dag dag = lower(scenario, make_world(scenario, true));
    std::int64_t count = 0;
    for (const ParameterShard& shard : dag.shards) count += shard.rows * shard.columns;
    EXPECT_EQ(count, parameter_count(scenario.model)) << model;
  }
}

TEST(CompressedStep, FoldsLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(
                tiny_cluster(words(v4 + "parallelism.tp=4 parallelism.sp=true parallelism.pp=2 parallelism.dp=2"))),
            2U);
  // Of a key for 8 positions the chunks of ranks 1 and 2 have 2 pairs, those of 0 and 3 have 3, and a window of 3 takes some from
  // rank 0.
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(
                words(attention + "model.layer_types=[heavily_compressed_attention] parallelism.tp=2 parallelism.cp=4 "
                                  "parallelism.cp_method=all-gather training.micro_batch=2"))),
            3U);
  // Of sixteen replicas some own matrices that Muon updates, others do not.
  EXPECT_GE(expect_equal_when_folded(
                tiny_cluster(words(attention + "model.layers=1 model.layer_types=[compressed_sparse_attention] "
                                               "model.hyper_connections.streams=2 model.mtp_depth=1 "
                                               "training.optimizer=muon parallelism.dp=32 training.global_batch=32"))),
            1U);
}

}  // namespace
}  // namespace tandem::studies::compressed_attention_test
