// Gated delta nets: the sharded step is the unsharded one, folded or not, and what it computes and sends is what its formulas
// say.

#include <gtest/gtest.h>

#include <string>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::gated_delta_test {
namespace {

/// Three of four layers, as in Qwen3-Next.
const std::string delta =
    "model.layer_types=[linear_attention,linear_attention,linear_attention,full_attention] model.linear_attention.key_heads=4 "
    "model.linear_attention.value_heads=8 model.linear_attention.key_dim=6 model.linear_attention.value_dim=5 "
    "model.linear_attention.chunk=4 ";
const std::string all_linear = delta + "model.layer_types=[linear_attention] ";
const std::string sp = "parallelism.tp=2 parallelism.sp=true ";

class GatedDelta : public testing::TestWithParam<const char*> {};

// Heads as wide as these, as a query and a key of a few dimensions are often almost orthogonal: what is read is small then, and
// the norm makes its rounding large. The rule a position at a time (chunks of 1) gives the same differences.
TEST_P(GatedDelta, ShardedStepIsTheUnshardedStep) {
  const std::string wide = "model.linear_attention.key_dim=64 model.linear_attention.value_dim=64 training.global_batch=4 ";
  EXPECT_LT(largest_difference(tiny_model(words(delta + wide + GetParam()))), 3e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, GatedDelta,
    testing::Values("", "parallelism.tp=2", "parallelism.tp=4 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=full training.micro_batch=2",
                    "parallelism.tp=2 parallelism.dp=2 parallelism.zero=3 training.recompute=[norm]",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 training.schedule=zb-h1",
                    "parallelism.dp=2 parallelism.ep=2 model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24"));

INSTANTIATE_TEST_SUITE_P(
    Contexts, GatedDelta,
    testing::Values("parallelism.cp=2", "parallelism.cp=4",
                    "parallelism.cp=2 parallelism.cp_layout=contiguous training.micro_batch=2",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.sp=true training.recompute=full",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 parallelism.zero=2"));

TEST(GatedDeltaStep, FoldsLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(delta + sp + "parallelism.pp=2 parallelism.dp=2"))), 2U);
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(delta + sp + "parallelism.cp=2 parallelism.pp=2"))), 2U);
}

TEST(GatedDeltaStep, ComputesTheFlopsOfTheModelAndOfWhatTheBackwardMakesAgain) {
  const Scenario scenario = tiny_model(words(all_linear));
  const Dag dag = lower(scenario, make_world(scenario, false));
  Flops flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) flops += cost_of(dag, id).flops;
  // Of a position and value head, with E 6, P 5 and chunks of C 4: forward 6 E P + C (6 E + 4 P) + C^2 / 3; backward what that is
  // without the outputs, 2 E P + 2 C (E + P), and 12 E P + C (14 E + 8 P) + 4 C^2 more. The model counts three times the forward.
  const double forward = 6 * 30 + 4 * (36 + 20) + 16 / 3.0, again = forward - 2 * 30 - 2 * 4 * 11;
  const double backward = again + 12 * 30 + 4 * (14 * 6 + 8 * 5) + 4 * 16;
  const double beyond = 8 * (backward - 2 * forward);
  const double expected = (dag.info.model_flops_per_token + 4 * beyond) * static_cast<double>(dag.info.tokens);
  EXPECT_NEAR(flops, expected, 1e-9 * expected);
}

TEST(GatedDeltaStep, HoldsTheParametersThatAreCounted) {
  for (const std::string& model : {delta, all_linear}) {
    const Scenario scenario = tiny_model(words(model));
    const Dag dag = lower(scenario, make_world(scenario, false));
    std::int64_t elements = 0;
    for (const ParameterShard& shard : dag.shards) elements += shard.rows * shard.columns;
    EXPECT_EQ(elements, parameter_count(scenario.model));
  }
}

// q, k, v, z, b and a go to the heads, one by one, and what the norm gives comes back; backward the other way round. Of a
// position that is 2 * 4 * 6 for q and k, 3 * 8 * 5 for v, z and the output, 2 * 8 for b and a.
TEST(GatedDeltaStep, ExchangesHeadsForPositions) {
  for (const std::int64_t cp : {2, 4}) {
    const Scenario scenario = tiny_cluster(words(all_linear + "training.global_batch=1 parallelism.cp=" + std::to_string(cp)));
    const auto volumes = volumes_of(lower(scenario, make_world(scenario, false)), 0);
    const Volume expected{4 * 7, 4 * size_of(scenario.training.storage()) * (16 / cp) * (2 * 24 + 3 * 40 + 2 * 8)};
    EXPECT_EQ(volumes.at("all_to_all cp forward"), expected);
    EXPECT_EQ(volumes.at("all_to_all cp backward-input"), expected);
  }
}

// The norm's weight is one for all heads: every tensor-parallel rank adds what its heads say, with sp and without.
TEST(GatedDeltaStep, SumsTheGradientOfTheNormOverItsHeads) {
  for (const std::string& mesh : {std::string("parallelism.tp=2 "), sp}) {
    const Scenario scenario = tiny_cluster(words(all_linear + mesh));
    const Dag dag = lower(scenario, make_world(scenario, false));
    std::size_t sums = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (dag.tasks[id].op == OpKind::all_reduce && dag.name_of_task(id) == "head gradients") ++sums;
    EXPECT_EQ(sums, 2U) << mesh;  // a rank has one bucket of such weights
  }
}

}  // namespace
}  // namespace tandem::studies::gated_delta_test
