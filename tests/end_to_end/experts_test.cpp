// Experts: sharded equals unsharded, folded equals unfolded.

#include <gtest/gtest.h>

#include <memory>

#include "runtime/host/compare.h"
#include "scenarios/mesh/token_routing.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::experts_test {
namespace {

std::vector<std::string> with_experts(const std::string& overrides) {
  std::vector<std::string> list = words("model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24");
  for (const std::string& o : words(overrides)) list.push_back(o);
  return list;
}

class ExpertEquivalence : public testing::TestWithParam<const char*> {};

TEST_P(ExpertEquivalence, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_model(with_experts(GetParam()))), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Experts, ExpertEquivalence,
    testing::Values(
        "parallelism.dp=2 parallelism.ep=2", "parallelism.dp=4 parallelism.ep=4 parallelism.zero=0",
        "parallelism.dp=8 parallelism.ep=8 parallelism.zero=2", "parallelism.dp=4 parallelism.ep=2",
        "parallelism.dp=4 parallelism.ep=2 parallelism.zero=0", "parallelism.dp=4 parallelism.ep=2 parallelism.zero=2",
        "parallelism.dp=4 parallelism.zero=0", "parallelism.tp=2 parallelism.sp=true parallelism.ep=2",
        "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4",
        "parallelism.tp=4 parallelism.sp=true parallelism.dp=2 parallelism.ep=2",
        "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=2 parallelism.etp=2",
        "parallelism.dp=2 parallelism.etp=2", "parallelism.dp=4 parallelism.etp=2 parallelism.zero=0",
        "parallelism.tp=2 parallelism.sp=true parallelism.etp=2 parallelism.dp=4 parallelism.ep=2 parallelism.zero=2",
        "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2",
        "parallelism.dp=4 parallelism.ep=2 parallelism.pp=2 parallelism.zero=0",
        "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.pp=2 parallelism.ep=4 "
        "parallelism.order=[tp,pp,dp,cp,ep]",
        "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
        "parallelism.dp=2 parallelism.ep=2 model.moe.shared_experts=2",
        "parallelism.tp=2 parallelism.sp=true parallelism.ep=2 model.moe.shared_experts=1",
        "parallelism.dp=2 parallelism.ep=2 model.moe.every=2", "parallelism.dp=2 parallelism.ep=2 model.moe.first_dense_layers=1",
        "parallelism.dp=2 parallelism.ep=2 model.moe.capacity_factor=1",
        "parallelism.dp=4 parallelism.ep=4 model.moe.capacity_factor=0.5",
        "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 model.moe.capacity_factor=1.25 "
        "training.micro_batch=2",
        "parallelism.dp=2 parallelism.ep=2 model.moe.capacity_factor=4", "parallelism.dp=2 parallelism.ep=2 model.moe.top_k=1",
        "parallelism.dp=2 parallelism.ep=2 model.moe.top_k=1 model.moe.capacity_factor=1",
        "parallelism.dp=2 parallelism.ep=2 model.moe.top_k=3", "parallelism.dp=2 parallelism.ep=2 model.moe.balance_loss=3",
        "parallelism.dp=2 parallelism.ep=2 model.moe.balance_loss=3 model.moe.capacity_factor=1",
        "parallelism.dp=2 parallelism.ep=2 model.moe.load=[4,1,1,3,1,2,0,1]",
        "parallelism.dp=2 parallelism.ep=2 model.moe.load=[1,1,2,1,0,0,0,0]",
        "parallelism.dp=4 parallelism.ep=4 model.moe.load.zipf=1.2",
        "parallelism.dp=4 parallelism.ep=2 parallelism.etp=2 model.moe.load.zipf=0.7 parallelism.zero=0",
        "parallelism.dp=4 parallelism.ep=4 model.moe.load.zipf=1.2 model.moe.capacity_factor=1",
        "parallelism.dp=2 parallelism.ep=2 model.moe.load=[4,1,1,3,1,2,0,1] model.moe.capacity_factor=1.5 "
        "model.moe.pad_to_capacity=false model.moe.balance_loss=3",
        "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 model.moe.load.zipf=1 "
        "model.moe.capacity_factor=0.5 model.moe.pad_to_capacity=false training.micro_batch=2",
        "parallelism.ep=2 parallelism.expert_axis=own",
        "parallelism.ep=4 parallelism.dp=2 parallelism.expert_axis=own parallelism.zero=0",
        "parallelism.ep=2 parallelism.dp=2 parallelism.expert_axis=own parallelism.zero=2 parallelism.tp=2 parallelism.sp=true",
        "parallelism.ep=2 parallelism.dp=2 parallelism.expert_axis=own parallelism.tp=2 parallelism.sp=true parallelism.etp=2",
        "parallelism.ep=2 parallelism.pp=2 parallelism.dp=2 parallelism.expert_axis=own parallelism.order=[ep,tp,dp,pp,cp]",
        "parallelism.ep=4 parallelism.dp=2 parallelism.expert_axis=own parallelism.zero=3 parallelism.hsdp=4",
        "parallelism.ep=2 parallelism.dp=4 parallelism.expert_axis=own parallelism.zero=1 parallelism.hsdp=2 parallelism.etp=2 "
        "parallelism.tp=2 parallelism.sp=true",
        "parallelism.cp=2 parallelism.ep=2 parallelism.dp=2 parallelism.expert_axis=own parallelism.zero=2 parallelism.hsdp=4 "
        "parallelism.order=[tp,dp,cp,ep,pp]",
        "parallelism.dp=4 parallelism.ep=2 parallelism.zero=3", "parallelism.dp=4 parallelism.ep=4 parallelism.zero=3",
        "parallelism.dp=4 parallelism.ep=2 parallelism.zero=3 parallelism.hsdp=2",
        "parallelism.tp=2 parallelism.sp=true parallelism.zero=3",
        "parallelism.dp=4 parallelism.ep=2 training.grad_compression=2",
        "parallelism.cp=2 parallelism.dp=2 parallelism.ep=4 model.moe.capacity_factor=1",
        "parallelism.cp=2 parallelism.ep=2 parallelism.cp_layout=contiguous model.moe.capacity_factor=1",
        "parallelism.cp=2 parallelism.tp=2 parallelism.sp=true parallelism.ep=2 parallelism.etp=2 model.moe.capacity_factor=0.75",
        "parallelism.cp=2 parallelism.dp=2 parallelism.ep=2 parallelism.expert_axis=own parallelism.zero=0",
        "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2 training.schedule=zb-h1",
        "parallelism.dp=2 parallelism.ep=2 training.recompute=full",
        "parallelism.dp=2 parallelism.ep=2 training.recompute=selective",
        "parallelism.dp=2 parallelism.ep=2 model.gated=false model.norm=layer training.overlap.dp=false",
        "parallelism.dp=4 parallelism.ep=4 training.bucket_MB=0.004 parallelism.zero=2"));

// Without sp all tensor-parallel ranks hold the same tokens.
INSTANTIATE_TEST_SUITE_P(
    ExpertsOfDuplicateTokens, ExpertEquivalence,
    testing::Values(
        "parallelism.tp=2", "parallelism.tp=2 parallelism.ep=2", "parallelism.tp=2 parallelism.etp=2",
        "parallelism.tp=4 parallelism.dp=2 parallelism.ep=4 parallelism.zero=0 model.moe.balance_loss=3",
        "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.etp=2 model.moe.capacity_factor=1 parallelism.zero=2",
        "parallelism.tp=2 parallelism.dp=2 parallelism.ep=4 model.moe.capacity_factor=0.75 training.micro_batch=2 "
        "model.moe.shared_experts=1",
        "parallelism.tp=2 parallelism.cp=2 parallelism.dp=2 parallelism.ep=4 model.moe.capacity_factor=1",
        "parallelism.tp=2 parallelism.ep=2 parallelism.expert_axis=own parallelism.dp=2 parallelism.zero=3",
        "parallelism.tp=2 parallelism.dp=2 parallelism.pp=2 parallelism.ep=4 training.schedule=zb-h1 model.moe.top_k=1",
        "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.zero=3 training.recompute=full",
        "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 training.recompute=[norm,activation]",
        "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 training.recompute=[mlp] model.moe.first_dense_layers=1",
        "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 model.moe.load.zipf=1 model.norm=layer model.gated=false"));

// The balance loss of each sequence, whose tokens several ranks route.
INSTANTIATE_TEST_SUITE_P(
    ExpertsOfBalancedSequences, ExpertEquivalence,
    testing::Values(
        "model.moe.balance_scope=sequence model.moe.balance_loss=3 parallelism.dp=2 parallelism.ep=2 training.micro_batch=2",
        "model.moe.balance_scope=sequence model.moe.balance_loss=3 parallelism.tp=2 parallelism.sp=true parallelism.ep=2 "
        "training.micro_batch=2",
        "model.moe.balance_scope=sequence model.moe.balance_loss=3 parallelism.tp=2 parallelism.dp=2 parallelism.ep=4 "
        "model.moe.capacity_factor=0.75 training.micro_batch=2",
        "model.moe.balance_scope=sequence model.moe.balance_loss=3 parallelism.cp=2 parallelism.dp=2 parallelism.ep=4 "
        "training.micro_batch=2 model.moe.capacity_factor=1",
        "model.moe.balance_scope=sequence model.moe.balance_loss=3 parallelism.cp=2 parallelism.tp=2 parallelism.sp=true "
        "parallelism.ep=2 parallelism.cp_layout=contiguous training.recompute=full training.micro_batch=2",
        "model.moe.balance_scope=sequence model.moe.balance_loss=3 parallelism.cp=4 parallelism.cp_method=ulysses "
        "parallelism.pp=2 parallelism.ep=2 model.moe.score_function=sigmoid model.moe.expert_bias=true",
        "model.moe.balance_scope=sequence model.moe.balance_loss=3 parallelism.tp=2 parallelism.sp=true parallelism.dp=2 "
        "parallelism.ep=4 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b training.overlap.ep=true"));

INSTANTIATE_TEST_SUITE_P(
    ExpertsThatChoose, ExpertEquivalence,
    testing::Values(
        "model.moe.routing=expert-choice parallelism.dp=2 parallelism.ep=2",
        "model.moe.routing=expert-choice parallelism.dp=4 parallelism.ep=4 parallelism.zero=0 model.moe.capacity_factor=1.5",
        "model.moe.routing=expert-choice parallelism.dp=8 parallelism.ep=8 parallelism.zero=2 model.moe.top_k=3",
        "model.moe.routing=expert-choice parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.etp=2 "
        "model.moe.balance_loss=3",
        "model.moe.routing=expert-choice parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 "
        "training.micro_batch=2 model.moe.top_k=1",
        "model.moe.routing=expert-choice parallelism.cp=2 parallelism.dp=2 parallelism.ep=4 model.moe.shared_experts=1",
        "model.moe.routing=expert-choice parallelism.cp=2 parallelism.tp=2 parallelism.sp=true parallelism.ep=2 "
        "parallelism.cp_layout=contiguous model.moe.capacity_factor=0.75",
        "model.moe.routing=expert-choice parallelism.dp=2 parallelism.ep=2 parallelism.pp=2 training.schedule=zb-h1",
        "model.moe.routing=expert-choice parallelism.dp=2 parallelism.ep=2 training.recompute=full",
        "model.moe.routing=expert-choice parallelism.dp=4 parallelism.ep=2 parallelism.zero=3 model.moe.capacity_factor=8",
        "model.moe.routing=expert-choice parallelism.ep=2 parallelism.dp=2 parallelism.expert_axis=own parallelism.tp=2"));

// Who chooses decides what is computed, so the comparison above depends on it.
TEST(ExpertChoice, ChangesTheStep) {
  const auto step_of = [](const std::string& routing) {
    auto step = std::make_unique<ExecutedStep>(
        unsharded(tiny_model(with_experts("model.moe.capacity_factor=1 model.moe.routing=" + routing))), "test");
    step->execute();
    return step;
  };
  EXPECT_GT(compare(step_of("top-k")->memory(), step_of("expert-choice")->memory()).largest(), 1e-4);
}

/// Nodes of two GPUs, unless said otherwise.
Scenario on_small_nodes(const std::string& overrides) {
  return tiny_cluster(with_experts("cluster.gpus_per_node=2 cluster.nics_per_node=2 " + overrides));
}

class NodeLimited : public testing::TestWithParam<const char*> {};

TEST_P(NodeLimited, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(on_small_nodes(GetParam())), 1e-5); }

TEST_P(NodeLimited, FoldedTimesAreTheUnfolded) { EXPECT_GT(expect_equal_when_folded(on_small_nodes(GetParam())), 0U); }

TEST_P(NodeLimited, ReferenceHasTheSameNodes) {
  const Scenario scenario = on_small_nodes(GetParam());
  const NodeLimit limit = node_limit_of(scenario);
  EXPECT_EQ(limit.visited, scenario.model.moe.node_limit);
  EXPECT_GE(limit.nodes, 2);
  EXPECT_EQ(node_limit_of(unsharded(scenario)).nodes, limit.nodes);
}

INSTANTIATE_TEST_SUITE_P(
    Experts, NodeLimited,
    testing::Values(
        // two nodes, one of them
        "parallelism.dp=4 parallelism.ep=4 model.moe.node_limit=1",
        "parallelism.dp=4 parallelism.ep=4 model.moe.node_limit=1 model.moe.capacity_factor=1",
        "parallelism.ep=4 parallelism.dp=2 parallelism.expert_axis=own model.moe.node_limit=1 model.moe.load.zipf=1",
        "parallelism.dp=8 parallelism.ep=4 parallelism.etp=2 model.moe.node_limit=1 cluster.gpus_per_node=4 "
        "cluster.nics_per_node=4",
        "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 model.moe.node_limit=1 training.micro_batch=2 "
        "model.moe.capacity_factor=0.75 model.moe.shared_experts=1",
        "parallelism.cp=2 parallelism.dp=2 parallelism.ep=4 model.moe.node_limit=1 model.moe.capacity_factor=1",
        "parallelism.cp=2 parallelism.dp=2 parallelism.ep=2 cluster.gpus_per_node=1 cluster.nics_per_node=1 "
        "parallelism.order=[tp,ep,cp,dp,pp] model.moe.node_limit=1 model.moe.load=[5,1,1,2,0,0,0,0]",
        // three and four nodes, one or two of them
        "parallelism.dp=3 parallelism.ep=3 cluster.gpus_per_node=1 cluster.nics_per_node=1 model.moe.experts=9 model.moe.top_k=4 "
        "model.moe.node_limit=2 training.global_batch=6",
        "parallelism.dp=8 parallelism.ep=8 model.moe.node_limit=1 model.moe.top_k=2",
        "parallelism.dp=8 parallelism.ep=8 model.moe.node_limit=2 model.moe.top_k=4 parallelism.zero=2",
        "parallelism.dp=8 parallelism.ep=8 model.moe.node_limit=2 model.moe.top_k=4 model.moe.capacity_factor=0.5",
        "parallelism.dp=8 parallelism.ep=8 model.moe.node_limit=2 model.moe.top_k=3 model.moe.capacity_factor=1.25 "
        "model.moe.balance_loss=2",
        "parallelism.dp=8 parallelism.ep=8 model.moe.node_limit=2 model.moe.experts=16 model.moe.top_k=4 model.moe.load.zipf=0.8",
        "parallelism.dp=4 parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.ep=4 parallelism.etp=2 "
        "cluster.gpus_per_node=4 cluster.nics_per_node=4 model.moe.node_limit=1 model.moe.load=[1,3,2,2,0,1,1,0]",
        "parallelism.ep=8 parallelism.expert_axis=own model.moe.node_limit=2 model.moe.top_k=4 parallelism.zero=3 "
        "model.moe.capacity_factor=1"));

// Routing without the limit is another step, so the comparison above depends on it.
TEST(NodeLimit, ChangesTheStep) {
  Scenario limited = on_small_nodes("parallelism.dp=4 parallelism.ep=4 model.moe.node_limit=1 model.moe.capacity_factor=1");
  ExecutedStep step(limited, "test");
  step.execute();
  limited.model.moe.node_limit = 0;
  ExecutedStep reference(unsharded(limited), "test");
  reference.execute();
  EXPECT_GT(compare(step.memory(), reference.memory()).largest(), 1e-4);
}

class ExpertFolding : public testing::TestWithParam<const char*> {};

TEST_P(ExpertFolding, FoldedTimesAreTheUnfolded) {
  const std::size_t classes = expect_equal_when_folded(tiny_cluster(with_experts(GetParam())));
  EXPECT_GT(classes, 0U);
  EXPECT_LT(classes, 16U);
}

INSTANTIATE_TEST_SUITE_P(
    Experts, ExpertFolding,
    testing::Values("parallelism.dp=16 parallelism.ep=8 training.global_batch=16",
                    "parallelism.dp=8 parallelism.tp=2 parallelism.sp=true parallelism.ep=8 parallelism.zero=0",
                    "parallelism.dp=8 parallelism.tp=2 parallelism.ep=8 parallelism.pp=2",
                    "parallelism.dp=4 parallelism.tp=4 parallelism.ep=2 parallelism.etp=2 model.moe.load.zipf=1",
                    "parallelism.dp=8 parallelism.tp=2 parallelism.sp=true parallelism.ep=4 parallelism.etp=2 parallelism.pp=2",
                    "parallelism.dp=4 parallelism.tp=2 parallelism.sp=true parallelism.ep=4 parallelism.pp=2 "
                    "parallelism.order=[tp,pp,dp,cp,ep]",
                    "parallelism.dp=16 parallelism.ep=8 model.moe.load.zipf=1 training.global_batch=16",
                    "parallelism.dp=8 parallelism.ep=2 model.moe.load=[1,1,1,1,2,2,2,2] cluster.gpus_per_node=4 "
                    "cluster.nics_per_node=4 cluster.fabric.leaf_ports=2",
                    "parallelism.dp=4 parallelism.ep=4 parallelism.expert_axis=own training.global_batch=16",
                    "parallelism.dp=2 parallelism.ep=8 parallelism.expert_axis=own training.global_batch=16 "
                    "parallelism.order=[ep,tp,dp,cp,pp]",
                    "parallelism.dp=2 parallelism.ep=4 parallelism.tp=2 parallelism.sp=true parallelism.expert_axis=own "
                    "parallelism.etp=2 parallelism.order=[tp,dp,ep,cp,pp]",
                    "parallelism.cp=2 parallelism.dp=4 parallelism.ep=8 parallelism.cp_layout=contiguous",
                    "parallelism.dp=16 parallelism.ep=8 model.moe.load.zipf=1 model.moe.capacity_factor=1.5 "
                    "training.global_batch=16",
                    "parallelism.dp=16 parallelism.ep=8 model.moe.load.zipf=1 model.moe.capacity_factor=1.5 "
                    "model.moe.pad_to_capacity=false training.global_batch=16",
                    "parallelism.dp=16 parallelism.ep=8 model.moe.routing=expert-choice parallelism.dispatcher=deepep "
                    "training.global_batch=16",
                    "parallelism.dp=16 parallelism.ep=16 model.moe.experts=16 model.moe.top_k=4 model.moe.node_limit=1 "
                    "training.global_batch=16"));

}  // namespace
}  // namespace tandem::studies::experts_test
