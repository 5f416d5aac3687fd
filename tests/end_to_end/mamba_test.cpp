// Mamba-2: the sharded step is the unsharded one, folded or not, and what it computes and sends is what its formulas say.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::mamba_test {
namespace {

/// Mamba, an MLP, attention and an MLP, as in a hybrid; or layers of Mamba alone.
const std::string mamba =
    "model.layer_types=M-*- model.mamba.heads=8 model.mamba.head_dim=4 model.mamba.groups=4 model.mamba.state=6 "
    "model.mamba.chunk=4 ";
const std::string sp = "parallelism.tp=2 parallelism.sp=true ";

class Mamba : public testing::TestWithParam<const char*> {};

// Heads as wide as these: where all that a group of a few elements reads is small, the norm makes its rounding large.
TEST_P(Mamba, ShardedStepIsTheUnshardedStep) {
  const std::string wide = "model.mamba.head_dim=64 training.global_batch=4 ";
  EXPECT_LT(largest_difference(tiny_model(words(mamba + wide + GetParam()))), 3e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, Mamba,
    testing::Values("", "parallelism.tp=2", "parallelism.tp=4 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=full",
                    "parallelism.tp=2 training.recompute=selective training.micro_batch=2",
                    "parallelism.dp=2 parallelism.zero=3 training.recompute=[norm]",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 training.schedule=zb-h1",
                    "parallelism.tp=2 parallelism.sp=true training.overlap.tp=true",
                    "model.layer_types=[mamba] parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b"));

// Ranks with a group each, with a group for two, and with two groups.
INSTANTIATE_TEST_SUITE_P(
    Contexts, Mamba,
    testing::Values("parallelism.cp=2", "parallelism.cp=4", "parallelism.cp=4 model.mamba.groups=2",
                    "parallelism.cp=2 parallelism.cp_layout=contiguous training.micro_batch=2",
                    "parallelism.cp=2 parallelism.cp_method=ulysses parallelism.cp_layout=contiguous",
                    "parallelism.cp=4 parallelism.tp=2 parallelism.sp=true training.recompute=full model.layer_types=[mamba]",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 parallelism.zero=2 "
                    "parallelism.cp_method=all-gather",
                    "parallelism.cp=2 parallelism.dp=2 parallelism.zero=3"));

// A mixture of experts that see a latent of the tokens, as in Nemotron 3.
INSTANTIATE_TEST_SUITE_P(
    LatentExperts, Mamba,
    testing::Values("model.layer_types=ME*E model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.latent=12 ",
                    "model.layer_types=[mamba,moe] model.moe.experts=8 model.moe.top_k=2 model.moe.latent=12 "
                    "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 model.moe.shared_experts=2",
                    "model.layer_types=[mamba,moe] model.moe.experts=8 model.moe.top_k=2 model.moe.latent=12 "
                    "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 training.gates_at_experts=true",
                    "model.layer_types=ME*E model.moe.experts=8 model.moe.top_k=2 model.moe.latent=12 parallelism.dp=2 "
                    "parallelism.ep=2 parallelism.zero=2 training.recompute=[norm] model.moe.ffn=24"));

TEST(MambaStep, FoldsLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(mamba + sp + "parallelism.pp=2 parallelism.dp=2"))), 2U);
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(mamba + sp + "parallelism.cp=2 parallelism.pp=2"))), 2U);
}

TEST(MambaStep, ComputesTheFlopsOfTheModelAndOfWhatTheBackwardMakesAgain) {
  const Scenario scenario = tiny_model(words(mamba + "model.layer_types=[mamba]"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  Flops flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) flops += cost_of(dag, id).flops;
  // Of a position: states, 2 * 32 * 6; C B^T, 2 * 4 * 4 * 6; pairs, 32 * (4 + 1), of which the formula counts 32 * 4. Forward two
  // products of states and one of each of the others; backward five, three and three, where the model counts twice the forward.
  const double states = 2 * 32 * 6, keys = 2 * 4 * 4 * 6, pairs = 32 * 5;
  const double beyond = (2 + 5 - 6) * states + (1 + 3 - 3) * keys + (1 + 3) * pairs - 3 * 32 * 4;
  const double expected = (dag.info.model_flops_per_token + 4 * beyond) * static_cast<double>(dag.info.tokens);
  EXPECT_NEAR(flops, expected, 1e-9 * expected);
}

TEST(MambaStep, HoldsTheParametersThatAreCounted) {
  for (const std::string types : {"[mamba]", "M-*-"}) {
    const Scenario scenario = tiny_model(words(mamba + "model.layer_types=" + types));
    const Dag dag = lower(scenario, make_world(scenario, false));
    std::int64_t elements = 0;
    for (const ParameterShard& shard : dag.shards) elements += shard.rows * shard.columns;
    EXPECT_EQ(elements, parameter_count(scenario.model));
  }
}

// z, x, B, C and dt go to the heads, one by one, and the scan's output comes back; backward the other way round. Of a position
// that is 3 * 32 for z, x and y, 2 * 4 * 6 for B and C, 8 for dt. Two groups for four ranks are sent twice, as if they were four.
TEST(MambaStep, ExchangesHeadsForPositions) {
  for (const auto& [groups, cp] : {std::pair{4, 2}, {4, 4}, {2, 4}}) {
    const Scenario scenario =
        tiny_cluster(words(mamba + "model.layer_types=[mamba] training.global_batch=1 parallelism.cp=" + std::to_string(cp) +
                           " model.mamba.groups=" + std::to_string(groups)));
    const Dag dag = lower(scenario, make_world(scenario, false));
    const auto volumes = volumes_of(dag, 0);
    const Volume expected{4 * 6, 4 * size_of(scenario.training.storage()) * (16 / cp) * (3 * 32 + 2 * 4 * 6 + 8)};
    EXPECT_EQ(volumes.at("all_to_all cp forward"), expected);
    EXPECT_EQ(volumes.at("all_to_all cp backward-input"), expected);
  }
}

}  // namespace
}  // namespace tandem::studies::mamba_test
