// Residual streams side by side, and experts that a token's number chooses: the sharded step is the unsharded one, folded or not,
// and what it computes, holds and sends is what its formulas say.

#include <gtest/gtest.h>

#include <string>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/model_flops.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::hyper_connection_test {
namespace {

const std::string streams = "model.hyper_connections.streams=3 model.hyper_connections.iterations=5 ";
const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 ";
const std::string hashed = experts + "model.moe.hash_layers=2 model.moe.score_function=sqrtsoftplus ";

class Streams : public testing::TestWithParam<const char*> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(Streams, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(streams + GetParam()))), 3e-5); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, Streams,
    testing::Values(
        "", "parallelism.tp=2", "parallelism.tp=4 parallelism.sp=true", "parallelism.cp=2 parallelism.tp=2",
        "parallelism.pp=2 parallelism.dp=2 parallelism.zero=1",
        "parallelism.tp=2 parallelism.pp=2 parallelism.scatter_gather=true",
        "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 training.schedule=zb-h1 parallelism.zero=2 parallelism.dp=2",
        "parallelism.dp=4 parallelism.zero=3 training.recompute=[norm,activation]",
        "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b training.recompute=full",
        "parallelism.tp=2 parallelism.sp=true training.recompute=selective training.micro_batch=2",
        "training.recompute=full training.recompute_segment=2", "parallelism.tp=2 training.optimizer=muon",
        "model.norm_placement=both model.tied_embeddings=true parallelism.pp=2",
        "model.layer_types=[attention,mlp] parallelism.tp=2",
        "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.ep=2 parallelism.dp=2"));

// What predicts further tokens takes the streams before they end, and ends its own.
INSTANTIATE_TEST_SUITE_P(
    FurtherTokens, Streams,
    testing::Values("model.mtp_depth=1", "model.mtp_depth=2 parallelism.tp=2 parallelism.sp=true training.micro_batch=2",
                    "model.mtp_depth=1 parallelism.tp=2 parallelism.cp=2",
                    "model.mtp_depth=2 model.tied_embeddings=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=1",
                    "model.mtp_depth=2 parallelism.dp=2 parallelism.zero=3 training.recompute=full",
                    "model.mtp_depth=1 parallelism.pp=2 training.schedule=zb-h1 parallelism.tp=2 parallelism.sp=true",
                    "model.mtp_depth=1 training.optimizer=muon parallelism.tp=2 parallelism.dp=2",
                    "model.mtp_depth=1 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b"));

TEST(StreamStep, FoldsLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(
                tiny_cluster(words(streams + "parallelism.tp=4 parallelism.sp=true parallelism.pp=2 parallelism.dp=2"))),
            2U);
}

TEST(StreamStep, HoldsTheParametersOfItsFormula) {
  const Scenario one = tiny_model({}), several = tiny_model(words(streams));
  const Dag dag = lower(several, make_world(several, true));
  std::int64_t count = 0;
  for (const ParameterShard& shard : dag.shards) count += shard.rows * shard.columns;
  EXPECT_EQ(count, parameter_count(several.model));
  // Of each half n (n + 2) gates of n h streams, a bias for each, and three factors; at the end n gates, and one factor.
  const std::int64_t h = one.model.hidden, n = 3, halves = 2 * one.model.layers;
  EXPECT_EQ(parameter_count(several.model) - parameter_count(one.model),
            halves * (n * (n + 2) * (n * h + 1) + 3) + n * (n * h + 1) + 1);
}

// Each depth: norms of the streams, of the token and at the end, projections of a stream and of the token, a layer, and gates
// that end its streams.
TEST(StreamStep, HoldsTheParametersOfFurtherTokens) {
  const Scenario without = tiny_model(words(streams)), with = tiny_model(words(streams + "model.mtp_depth=2"));
  const Dag dag = lower(with, make_world(with, true));
  std::int64_t count = 0;
  for (const ParameterShard& shard : dag.shards) count += shard.rows * shard.columns;
  EXPECT_EQ(count, parameter_count(with.model));
  ModelSpec shorter = without.model;
  --shorter.layers;
  const std::int64_t layer = parameter_count(without.model) - parameter_count(shorter);
  const std::int64_t h = with.model.hidden, n = 3;
  EXPECT_EQ(count - parameter_count(without.model), 2 * (layer + 3 * h + 2 * h * h + n * (n * h + 1) + 1));
}

/// The sum over the kernels so named.
Flops flops_of(const Dag& dag, std::string_view name) {
  Flops flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.name_of_task(id) == name) flops += cost_of(dag, id).flops;
  return flops;
}

// Three passes of the product that makes the gates' logits.
TEST(StreamStep, ComputesTheFlopsOfItsFormula) {
  const Scenario one = tiny_model({}), several = tiny_model(words(streams));
  const Dag a = lower(one, make_world(one, false)), b = lower(several, make_world(several, false));
  const double more = b.info.model_flops_per_token - a.info.model_flops_per_token;
  EXPECT_NEAR(flops_of(b, "hyper map"), more * static_cast<double>(b.info.tokens), 1e-9 * flops_of(b, "hyper map"));
}

// One product of the token, and one of each stream.
TEST(StreamStep, ComputesTheFlopsOfFurtherTokens) {
  const Scenario scenario = tiny_model(words(streams + "model.mtp_depth=2"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  const auto h = static_cast<double>(scenario.model.hidden), tokens = static_cast<double>(dag.info.tokens);
  EXPECT_EQ(flops_of(dag, "mtp projection"), 2 * 3 * 3 * 2 * h * h * tokens);
  EXPECT_EQ(flops_of(dag, "mtp token projection"), 2 * 3 * 2 * h * h * tokens);
  Flops of_model = 0;
  for (const char* name : {"mtp projection", "mtp token projection", "hyper map"}) of_model += flops_of(dag, name);
  ModelSpec one = scenario.model;
  one.hyper = {};
  const double without = model_flops_per_token(one, scenario.training.sequence) - 2 * 3 * 2 * 2 * h * h;
  EXPECT_NEAR(model_flops_per_token(scenario.model, scenario.training.sequence) - without, of_model / tokens, 1e-6 * without);
}

// What goes from stage to stage is as wide as all streams.
TEST(StreamStep, SendsAllStreams) {
  const auto sent = [](const std::string& model) {
    const Scenario scenario = tiny_model(words(model + "parallelism.pp=2"));
    const Dag dag = lower(scenario, make_world(scenario, false));
    std::int64_t elements = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (dag.tasks[id].op == OpKind::send) elements += dag.buffers[dag.operands_of(id).front().buffer].shape.elements();
    return elements;
  };
  EXPECT_EQ(sent(streams), 3 * sent(""));
}

class HashedExperts : public testing::TestWithParam<const char*> {};

TEST_P(HashedExperts, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_model(words(hashed + GetParam()))), 3e-5);
}

// With a capacity tokens go where their numbers send them, else where the load says.
INSTANTIATE_TEST_SUITE_P(
    Meshes, HashedExperts,
    testing::Values(
        "parallelism.ep=2 parallelism.dp=2", "model.moe.capacity_factor=2 parallelism.ep=4 parallelism.dp=4",
        "model.moe.capacity_factor=0.5 parallelism.ep=2 parallelism.dp=2 parallelism.tp=2 parallelism.sp=true",
        "model.moe.capacity_factor=2 parallelism.ep=2 parallelism.dp=2 parallelism.tp=2",
        "model.moe.capacity_factor=2 parallelism.cp=2 parallelism.ep=2 parallelism.dp=2",
        "model.moe.capacity_factor=2 parallelism.pp=2 training.schedule=zb-h1 parallelism.ep=2 parallelism.dp=2 "
        "training.recompute=full",
        "model.moe.expert_bias=true model.moe.capacity_factor=2 parallelism.pp=4 parallelism.ep=2 parallelism.dp=2",
        "model.moe.balance_scope=sequence model.moe.capacity_factor=2 parallelism.cp=2 parallelism.dp=2 parallelism.zero=3",
        "model.moe.capacity_factor=2 training.gates_at_experts=true parallelism.ep=2 parallelism.dp=2"));

// Two of four layers look choices up; of the others every token's logits choose.
TEST(HashedExperts, AreThoseOfTheFirstLayers) {
  const Scenario scenario = tiny_model(words(hashed + "model.moe.capacity_factor=2 model.moe.expert_bias=true"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::route) continue;
    const auto routing = std::get<RoutingAttributes>(kernel_of(dag, id).attributes);
    EXPECT_EQ(routing.hashed, dag.tasks[id].layer < 2);
    EXPECT_EQ(routing.biased, !routing.hashed);
  }
}

TEST(HashedExperts, AreNotOfFurtherTokens) {
  const Scenario scenario = tiny_model(words(hashed + "model.moe.capacity_factor=2 model.moe.hash_layers=64 model.mtp_depth=1"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::route) continue;
    EXPECT_EQ(std::get<RoutingAttributes>(kernel_of(dag, id).attributes).hashed, dag.tasks[id].layer < scenario.model.layers);
  }
}

TEST(HashedExperts, FoldLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(
                words(hashed + "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.ep=2"))),
            2U);
}

}  // namespace
}  // namespace tandem::studies::hyper_connection_test
