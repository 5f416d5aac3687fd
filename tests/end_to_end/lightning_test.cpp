// Lightning attention, and residual connections with factors: the sharded step is the unsharded one, folded or not, and what it
// computes and sends is what its formulas say.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::lightning_test {
namespace {

const std::string factors =
    "model.norm_placement=residual model.residual.full_attention_alpha=2 model.residual.full_attention_beta=0.75 "
    "model.residual.linear_attention_alpha=1.5 model.residual.linear_attention_beta=0.5 model.residual.mlp_alpha=3 ";
/// Three of four layers, with the norms and factors of MiniMax-Text-01.
const std::string three =
    "model.layer_types=[lightning_attention,lightning_attention,lightning_attention,full_attention] "
    "model.lightning_attention.heads=8 model.lightning_attention.head_dim=6 model.lightning_attention.chunk=4 " +
    factors;
const std::string all = three + "model.layer_types=[lightning_attention] ";
const std::string sp = "parallelism.tp=2 parallelism.sp=true ";

class LightningStep : public testing::TestWithParam<const char*> {};

TEST_P(LightningStep, ShardedIsTheUnsharded) {
  EXPECT_LT(largest_difference(tiny_model(words(three + "training.global_batch=4 " + GetParam()))), 3e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, LightningStep,
    testing::Values("", "parallelism.tp=2", "parallelism.tp=8 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=full training.micro_batch=2",
                    "parallelism.tp=2 parallelism.dp=2 parallelism.zero=3 training.recompute=[norm]",
                    "parallelism.tp=4 parallelism.sp=true training.overlap.tp=true",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 training.schedule=zb-h1",
                    "model.norm_placement=pre parallelism.tp=2", "model.norm_placement=both training.recompute=[norm,mlp]",
                    "parallelism.dp=2 parallelism.ep=2 model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24",
                    "training.optimizer=muon parallelism.tp=2 parallelism.dp=2"));

INSTANTIATE_TEST_SUITE_P(
    Contexts, LightningStep,
    testing::Values("parallelism.cp=2", "parallelism.cp=4",
                    "parallelism.cp=2 parallelism.cp_layout=contiguous training.micro_batch=2",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.sp=true training.recompute=full",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 parallelism.zero=2"));

// Without lightning attention, too: factors of the stream, and of the branch alone.
TEST(ResidualFactorsOfAttention, ShardedStepIsTheUnshardedStep) {
  for (const std::string model : {"model.norm_placement=residual ", "model.residual.mlp_beta=0.5 ",
                                  "model.residual.full_attention_alpha=2 model.norm_placement=both "})
    EXPECT_LT(largest_difference(tiny_model(words(model + sp + "parallelism.pp=2 training.recompute=[norm]"))), 3e-5) << model;
}

TEST(LightningStep, FoldsLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(three + sp + "parallelism.pp=2 parallelism.dp=2"))), 2U);
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(three + sp + "parallelism.cp=2 parallelism.pp=2"))), 2U);
}

// Of a position and head, with D 6 and chunks of C 4: forward 4 D^2 + 2 D (C + 1), backward 10 D^2 + 6 D (C + 1). The model
// counts three times the forward.
TEST(LightningStep, ComputesTheFlopsOfTheModelAndOfWhatTheBackwardMakesAgain) {
  const Scenario scenario = tiny_model(words(all));
  const Dag dag = lower(scenario, make_world(scenario, false));
  Flops flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) flops += cost_of(dag, id).flops;
  const double forward = 4 * 36 + 2 * 6 * 5, backward = 10 * 36 + 6 * 6 * 5;
  const double beyond = 4 * 8 * (backward - 2 * forward);
  const double expected = (dag.info.model_flops_per_token + beyond) * static_cast<double>(dag.info.tokens);
  EXPECT_NEAR(flops, expected, 1e-9 * expected);
}

TEST(LightningStep, HoldsTheParametersThatAreCounted) {
  for (const std::string& model : {three, all}) {
    const Scenario scenario = tiny_model(words(model));
    const Dag dag = lower(scenario, make_world(scenario, false));
    std::int64_t elements = 0;
    for (const ParameterShard& shard : dag.shards) elements += shard.rows * shard.columns;
    EXPECT_EQ(elements, parameter_count(scenario.model));
  }
}

// q, k and v go to the heads, and the outputs come back; backward the other way round. Each is 8 * 6 of a position; the gate
// stays.
TEST(LightningStep, ExchangesHeadsForPositions) {
  for (const std::int64_t cp : {2, 4}) {
    const Scenario scenario = tiny_cluster(words(all + "training.global_batch=1 parallelism.cp=" + std::to_string(cp)));
    const auto volumes = volumes_of(lower(scenario, make_world(scenario, false)), 0);
    const Volume expected{4 * 4, 4 * size_of(scenario.training.storage()) * (16 / cp) * (4 * 8 * 6)};
    EXPECT_EQ(volumes.at("all_to_all cp forward"), expected);
    EXPECT_EQ(volumes.at("all_to_all cp backward-input"), expected);
  }
}

/// The tasks of the first rank of a layer.
template <typename Visit>
void for_tasks_of(const Dag& dag, OpKind op, Visit visit) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].op == op) visit(id);
}

// The norm is of all heads: ranks add up one number of each token, in fp32, once in each direction.
TEST(LightningStep, AddsUpTheSquaresOfATokenOverItsHeads) {
  const Scenario scenario = tiny_cluster(words(all + sp + "training.global_batch=1"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::size_t sums = 0;
  for_tasks_of(dag, OpKind::all_reduce, [&](TaskId id) {
    if (dag.name_of_task(id) != "lightning norm") return;
    ++sums;
    const Buffer& buffer = dag.buffers[dag.operands[dag.tasks[id].first_operand].buffer];
    EXPECT_EQ(buffer.shape, Shape(16, 1));
    EXPECT_EQ(buffer.dtype, DType::f32);
  });
  EXPECT_EQ(sums, 2U * 4 * 2);  // directions, layers, ranks
}

// Each head of the model is on one of the ranks that share a layer, and fades the less the later its layer is: the last one's
// hardly.
TEST(LightningStep, FadesByHeadAndLayer) {
  const Scenario scenario = tiny_cluster(words(all + "training.global_batch=1 parallelism.tp=2 parallelism.cp=2"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::set<std::int32_t> first_heads;
  for_tasks_of(dag, OpKind::lightning_attention, [&](TaskId id) {
    const auto& attributes = std::get<LightningAttributes>(dag.attributes[dag.tasks[id].attributes]);
    first_heads.insert(attributes.first_head);
    EXPECT_EQ(attributes.heads, 8);
    EXPECT_NEAR(attributes.decay, 1 - dag.tasks[id].layer / 3.0, 2e-5);
    EXPECT_GT(attributes.decay, 0);
  });
  EXPECT_EQ(first_heads, (std::set<std::int32_t>{0, 2, 4, 6}));
}

}  // namespace
}  // namespace tandem::studies::lightning_test
