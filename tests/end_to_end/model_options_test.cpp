// Attention without a causal mask, and linear biases.
#include <gtest/gtest.h>

#include "runtime/dag/dag.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "scenarios/spec/model_flops.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::model_options_test {
namespace {

const std::string full = "model.causal=false ", biased = "model.linear_bias=true ";

class Options : public testing::TestWithParam<const char*> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(Options, AreTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_model(words(full + GetParam()))), 1e-5);
  EXPECT_LT(largest_difference(tiny_model(words(biased + GetParam()))), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, Options,
    testing::Values("parallelism.tp=4 parallelism.sp=true", "parallelism.tp=2 parallelism.dp=2 model.gated=false",
                    "parallelism.tp=8 model.kv_heads=2 parallelism.sp=true training.overlap.tp=true",
                    "parallelism.cp=4 parallelism.cp_method=ring", "parallelism.cp=2 parallelism.cp_layout=contiguous",
                    "parallelism.cp=2 parallelism.cp_method=all-gather parallelism.tp=2",
                    "parallelism.cp=2 parallelism.cp_method=ulysses training.attention=unfused training.recompute=selective",
                    "parallelism.pp=2 training.schedule=zb-h1 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.dp=4 parallelism.zero=3 training.recompute=[activation]"));

Dag lowered(const std::string& overrides) {
  const Scenario scenario = tiny_cluster(words(overrides));
  return lower(scenario, make_world(scenario, false));
}

Flops flops_of_attention(const Dag& dag, RankIndex rank) {
  Flops flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].rank == rank && (dag.tasks[id].op == OpKind::attention || dag.tasks[id].op == OpKind::attention_backward))
      flops += cost_of(dag, id).flops;
  return flops;
}

// All s^2 pairs instead of s (s + 1) / 2, on every context-parallel rank the same, whichever positions it holds.
TEST(FullAttention, SeesEveryPair) {
  const Flops causal = flops_of_attention(lowered(""), 0), all = flops_of_attention(lowered(full), 0);
  EXPECT_DOUBLE_EQ(all / causal, 16.0 * 16 / (16 * 17 / 2.0));
  for (const char* layout : {"zigzag", "contiguous"}) {
    const Dag dag = lowered(full + "parallelism.cp=4 parallelism.cp_layout=" + layout);
    for (RankIndex rank = 0; rank < 4; ++rank) EXPECT_DOUBLE_EQ(flops_of_attention(dag, rank), all / 4);
  }
}

TEST(FullAttention, CountsInFullAmongTheModelsFlops) {
  const Scenario causal = tiny_model({}), all = tiny_model({"model.causal=false"});
  const ModelSpec& model = causal.model;
  const double half = 3.0 * static_cast<double>(model.layers * 16 * model.heads * 2 * model.head_dim);
  EXPECT_DOUBLE_EQ(model_flops_per_token(all.model, 16) - model_flops_per_token(model, 16), half);
}

// Contiguous runs are equal work without a mask, so their ranks are of one class.
TEST(FullAttention, FoldsContiguousRanks) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(full + "parallelism.cp=4 parallelism.cp_layout=contiguous"))), 1U);
}

std::int64_t parameters_of(const std::string& overrides) {
  const Scenario scenario = tiny_model(words(overrides));
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::int64_t count = 0;
  for (const ParameterShard& shard : dag.shards) count += shard.rows * shard.columns;
  return count;
}

// Of each of 4 layers: heads and twice the key heads of 4 elements, two outputs of the hidden width, the inner width (twice where
// gated).
TEST(LinearBias, HasAnElementForEveryOutput) {
  EXPECT_EQ(parameters_of(biased) - parameters_of(""), 4 * ((8 + 2 * 4) * 4 + 32 + 2 * 48 + 32));
  EXPECT_EQ(parameters_of(biased + "model.gated=false") - parameters_of("model.gated=false"),
            4 * ((8 + 2 * 4) * 4 + 32 + 48 + 32));
}

TEST(LinearBias, IsRefusedWithExperts) {
  EXPECT_THROW(tiny_model(words(biased + "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24")), InputError);
}

}  // namespace
}  // namespace tandem::studies::model_options_test
