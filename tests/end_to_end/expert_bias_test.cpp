// Routers with sigmoids, scaled gates, groups of experts and biases that balance them: sharded equals unsharded, folded equals
// unfolded, and the biases move as the choices of the whole batch say.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "runtime/host/compare.h"
#include "runtime/host/unsharded.h"
#include "scenarios/lowering/lower.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/mutations.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::expert_bias_test {
namespace {

/// Tokens go where their numbers send them.
const std::string sigmoid =
    "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.capacity_factor=1.25 model.moe.score_function=sigmoid "
    "model.moe.scaling_factor=2.5 ";
constexpr double rate = 0.01;
const std::string biased = sigmoid + "model.moe.expert_bias=true model.moe.bias_update_rate=0.01 ";

class Routers : public testing::TestWithParam<std::string> {};

TEST_P(Routers, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_cluster(words(GetParam()))), 1e-5); }

TEST_P(Routers, FoldedTimesAreTheUnfoldedOnes) { EXPECT_GE(expect_equal_when_folded(tiny_cluster(words(GetParam()))), 1U); }

const std::string softmax = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.capacity_factor=1.25 ";

INSTANTIATE_TEST_SUITE_P(
    Scores, Routers,
    testing::Values(sigmoid + "parallelism.dp=4 parallelism.ep=4 parallelism.zero=0",
                    sigmoid + "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 model.moe.top_k=1",
                    sigmoid + "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 training.gates_at_experts=true",
                    sigmoid + "model.moe.score_function=sqrtsoftplus parallelism.tp=2 parallelism.sp=true parallelism.dp=2 "
                              "parallelism.ep=2 model.moe.expert_bias=true",
                    softmax + "model.moe.pre_softmax=true model.moe.scaling_factor=16 parallelism.dp=4 parallelism.ep=2",
                    // four groups of two experts on two ranks, in one node and in two
                    sigmoid + "model.moe.groups=4 model.moe.node_limit=2 model.moe.top_k=4 parallelism.dp=2 parallelism.ep=2",
                    softmax + "model.moe.groups=4 model.moe.node_limit=1 parallelism.dp=2 parallelism.ep=2 "
                              "cluster.gpus_per_node=1 cluster.nics_per_node=1 parallelism.dispatcher=deepep",
                    // two groups on four ranks
                    sigmoid + "model.moe.groups=2 model.moe.node_limit=1 parallelism.dp=4 parallelism.ep=4 "
                              "cluster.gpus_per_node=2 cluster.nics_per_node=2",
                    // without a capacity choices are forced
                    "model.moe.experts=8 model.moe.top_k=4 model.moe.ffn=24 model.moe.score_function=sigmoid model.moe.groups=4 "
                    "model.moe.node_limit=2 model.moe.load.zipf=0.5 parallelism.dp=2 parallelism.ep=2"));

INSTANTIATE_TEST_SUITE_P(
    Biases, Routers,
    testing::Values(biased + "parallelism.dp=1", biased + "parallelism.dp=4 parallelism.ep=4 parallelism.zero=0",
                    biased + "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.zero=2",
                    biased + "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 training.micro_batch=2",
                    biased + "parallelism.cp=2 parallelism.dp=2 parallelism.ep=4 model.moe.balance_loss=0",
                    biased + "parallelism.dp=4 parallelism.ep=2 parallelism.zero=3 parallelism.hsdp=2",
                    biased + "parallelism.ep=2 parallelism.dp=2 parallelism.expert_axis=own parallelism.tp=2",
                    biased + "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b parallelism.dp=2 "
                             "parallelism.ep=2 model.moe.first_dense_layers=1",
                    biased + "parallelism.pp=2 parallelism.dp=2 parallelism.ep=2 training.schedule=zb-h1",
                    biased + "parallelism.pp=2 parallelism.dp=2 parallelism.ep=2 training.schedule=dualpipe "
                             "training.overlap.ep=true model.moe.shared_experts=1",
                    biased + "parallelism.dp=2 parallelism.ep=2 training.recompute=full",
                    biased + "parallelism.dp=2 parallelism.ep=2 training.recompute=[mlp] model.mtp_depth=1",
                    biased + "parallelism.dp=2 parallelism.ep=2 model.moe.load=[4,1,1,3,1,2,0,1]",
                    biased + "parallelism.dp=4 parallelism.ep=4 model.moe.groups=4 model.moe.node_limit=2 model.moe.top_k=4",
                    biased + "parallelism.dp=2 parallelism.ep=2 training.optimizer=muon"));

/// By tensor, what so many steps add to each bias; and the counts of the last.
struct Biases {
  std::map<std::string, std::vector<float>> changes, counts;
};

Biases after_steps(const Scenario& scenario, int steps) {
  ExecutedStep step(scenario, "test", {}, {.count = steps});
  const UnshardedState before = gather_unsharded(step.memory());
  step.execute();
  const UnshardedState after = gather_unsharded(step.memory());
  Biases biases;
  for (const auto& [name, tensor] : after.weights) {
    if (!name.ends_with(".router.bias")) continue;
    biases.counts[name] = after.gradients.at(name).values;
    biases.changes[name] = tensor.values;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) biases.changes[name][i] -= before.weights.at(name).values[i];
  }
  return biases;
}

// 4 layers of 8 experts; 2 choices of each of the batch's tokens.
TEST(ExpertBias, MovesByTheRateAgainstTheLoadOfTheBatch) {
  const Scenario scenario = tiny_model(words(biased + "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.zero=0"));
  const double choices = 2.0 * static_cast<double>(scenario.training.global_batch * scenario.training.sequence);
  const Biases biases = after_steps(scenario, 1);
  EXPECT_EQ(biases.changes.size(), 4U);
  for (const auto& [name, counts] : biases.counts) {
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0.0), choices) << name;
    EXPECT_NE(counts, std::vector<float>(8, counts.front())) << name;
    for (std::size_t e = 0; e < counts.size(); ++e) {
      const double missing = choices / 8 - counts[e];
      EXPECT_NEAR(biases.changes.at(name)[e], missing > 0 ? rate : missing < 0 ? -rate : 0, 1e-7) << name << ' ' << e;
    }
  }
}

TEST(ExpertBias, OfTwoShardedStepsIsThatOfTwoUnshardedOnes) {
  for (const char* mesh : {"parallelism.dp=4 parallelism.ep=4", "parallelism.tp=2 parallelism.sp=true parallelism.ep=2",
                           "parallelism.cp=2 parallelism.pp=2 parallelism.dp=2 parallelism.ep=2"}) {
    const Scenario scenario = tiny_model(words(biased + "parallelism.zero=0 " + mesh));
    ExecutedStep steps(scenario, "test", {}, {.count = 2}), whole(unsharded(scenario), "test", {}, {.count = 2});
    steps.execute();
    whole.execute();
    EXPECT_LT(compare(steps.memory(), whole.memory()).largest(), 2e-5) << mesh;
    const Biases here = after_steps(scenario, 2), there = after_steps(unsharded(scenario), 2);
    EXPECT_EQ(here.changes, there.changes) << mesh;
    EXPECT_EQ(here.counts, there.counts) << mesh;
    EXPECT_NE(here.counts, after_steps(scenario, 1).counts) << mesh;
  }
}

// Loads that are forced to be even leave every bias where it was.
TEST(ExpertBias, StaysWhereTheLoadIsEven) {
  const Biases biases =
      after_steps(tiny_model(words(biased + "model.moe.capacity_factor=0 parallelism.dp=2 parallelism.ep=2")), 1);
  for (const auto& [name, changes] : biases.changes) EXPECT_EQ(changes, std::vector<float>(8, 0)) << name;
}

// What the comparisons above depend on: other choices are another gradient.
TEST(ExpertBias, ChangesTheStep) {
  const auto gradient = [](const std::string& options) {
    ExecutedStep step(unsharded(tiny_model(words(options))), "test");
    step.execute();
    return gather_unsharded(step.memory()).gradients.at("layer0.router").values;
  };
  const std::vector<float> with = gradient(biased), without = gradient(sigmoid);
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    difference = std::max(difference, std::abs(double{with[i]} - double{without[i]}));
    largest = std::max(largest, std::abs(double{without[i]}));
  }
  EXPECT_GT(difference, 1e-2 * largest);
}

class WithoutTheLoadOfOthers : public testing::Test, protected UnshardedStep {
 protected:
  static Scenario scenario() { return tiny_model(words(biased + "parallelism.dp=4 parallelism.ep=2 parallelism.zero=0")); }
  WithoutTheLoadOfOthers() : UnshardedStep(scenario()), dag_(lowered(scenario())) {}
  Dag dag_;
};

TEST_F(WithoutTheLoadOfOthers, AnotherStepIsMade) {
  EXPECT_LT(difference(dag_), 1e-5);
  std::set<GroupId> loads;
  for (GroupId g = 0; g < dag_.groups.size(); ++g)
    if (dag_.name_of_task(dag_.members_of(g).front()) == "expert load") loads.insert(g);
  EXPECT_EQ(loads.size(), 1U);
  EXPECT_FALSE(difference(dag_, 0, loads) <= allowed);
}

// One all-reduce of a count for each expert of each of the stage's two layers, in fp32, beside those of the gradients and the
// norm.
TEST(ExpertBias, SumsTheLoadsOfAStageInOneAllReduce) {
  const auto volumes = [](const std::string& options) {
    const Scenario scenario =
        tiny_cluster(words(options + "parallelism.pp=2 parallelism.dp=4 parallelism.ep=2 parallelism.zero=1"));
    return volumes_of(lower(scenario, make_world(scenario, false)), 0)["all_reduce dp optimizer"];
  };
  const Volume with = volumes(biased), without = volumes(sigmoid);
  EXPECT_EQ(with.count, without.count + 1);
  EXPECT_EQ(with.bytes, without.bytes + 2 * 8 * 4);
}

}  // namespace
}  // namespace tandem::studies::expert_bias_test
