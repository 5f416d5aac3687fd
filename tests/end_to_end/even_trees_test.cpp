// Trees that tell no ranks apart: where that is said to leave the step time, it does.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "sim/simulate.h"
#include "studies/step/relieved_flows.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/random_clusters.h"

namespace tandem::studies::even_trees_test {
namespace {

struct Simulated {
  World world;
  Dag dag;
  Timeline timeline;
};

Simulated simulated_on(const Scenario& scenario, World world) {
  Simulated step{.world = std::move(world), .dag = {}, .timeline = {}};
  step.dag = lower(scenario, step.world);
  step.timeline = sim::simulate(step.dag).timeline;
  return step;
}

Simulated exact_step(const Scenario& scenario) { return simulated_on(scenario, make_world(scenario, true)); }

Simulated even_step(const Scenario& scenario) {
  return simulated_on(scenario, make_world(scenario, true, {}, topology::Detail::sums, {}, trees_in_question(scenario)));
}

/// A mixture on an axis of its own, whose gradients are all-reduced in trees beside the backward passes.
Scenario mixture(int zero, const std::string& order, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = more;
  overrides.push_back("parallelism.zero=" + std::to_string(zero));
  overrides.push_back("parallelism.order=" + order);
  return parse_scenario(R"(
name: mixture
model: moe-1t
cluster: {preset: dgx-h100, gpus: 4096}
parallelism: {tp: 8, sp: true, cp: 4, pp: 4, ep: 4, etp: 8, dp: 8, expert_axis: own}
training: {sequence: 131072, micro_batch: 1, global_batch: 32, precision: bf16, schedule: 1f1b}
)",
                        "mixture.yaml", overrides);
}

constexpr const char* stages_outermost = "[tp,cp,ep,dp,pp]";
constexpr const char* replicas_outermost = "[tp,cp,ep,pp,dp]";

struct Compared {
  int earlier = 0, later = 0;  ///< tasks of the exact step, against the even one
};

Compared compare(const Simulated& exact, const Simulated& even) {
  const auto tasks_by_rank = [](const Dag& dag) {
    std::vector<std::vector<TaskId>> tasks(dag.ranks.size());
    for (TaskId id = 0; id < dag.tasks.size(); ++id) tasks[dag.tasks[id].rank].push_back(id);
    return tasks;
  };
  const auto of_exact = tasks_by_rank(exact.dag), of_even = tasks_by_rank(even.dag);
  const Seconds tolerance = 1e-9 * even.timeline.makespan();
  Compared compared;
  for (RankIndex rank = 0; rank < of_exact.size(); ++rank) {
    const std::vector<TaskId>& alike = of_even[even.world.class_of[exact.dag.ranks[rank].world_rank]];
    EXPECT_EQ(alike.size(), of_exact[rank].size());
    for (std::size_t i = 0; i < alike.size(); ++i) {
      const Seconds late = exact.timeline.end[of_exact[rank][i]] - even.timeline.end[alike[i]];
      if (late < -tolerance) ++compared.earlier;
      if (late > tolerance) ++compared.later;
    }
  }
  return compared;
}

TEST(EvenTrees, ZeroTellsNoMoreRanksApartThanTheRing) {
  for (const char* order : {stages_outermost, replicas_outermost}) {
    const StepResult all_reduced = simulate_step(mixture(0, order), true).result,
                     sharded = simulate_step(mixture(1, order), true).result;
    EXPECT_EQ(all_reduced.rank_classes, 4U) << order;
    EXPECT_EQ(all_reduced.rank_classes, sharded.rank_classes) << order;
    EXPECT_LE(all_reduced.tasks, sharded.tasks) << order;
    EXPECT_GE(make_world(mixture(0, order), true).ranks.size(), 40U) << order;
  }
}

// A root's gradient goes to the stage before sooner, and there the exchange of tokens waits for those of the other nodes.
TEST(EvenTrees, OnlySomeTasksOfRootsAreEarlier) {
  for (const char* order : {stages_outermost, replicas_outermost}) {
    const Scenario scenario = mixture(0, order);
    const Simulated exact = exact_step(scenario), even = even_step(scenario);
    ASSERT_TRUE(relief_is_absorbed(exact.world, even.world, even.dag, even.timeline)) << order;
    EXPECT_NEAR(exact.timeline.makespan(), even.timeline.makespan(), 1e-12 * exact.timeline.makespan()) << order;
    const Compared compared = compare(exact, even);
    EXPECT_EQ(compared.later, 0) << order;
    EXPECT_GT(compared.earlier, 0) << order;
    EXPECT_LT(compared.earlier, 100) << order;
  }
}

// Where nodes exchange tokens while trees run, a replica that is ahead of the others holds the trees up in its turn.
TEST(EvenTrees, ReliefThatMattersIsNoticed) {
  const Scenario scenario = parse_scenario(R"(
name: exchanges-beside-trees
model: {layers: 4, hidden: 6144, heads: 48, kv_heads: 8, head_dim: 128, ffn: 16384, gated: true, vocab: 32768, norm: rms,
        moe: {experts: 8, top_k: 2, ffn: 16384}}
cluster: {preset: dgx-h100, gpus: 2048}
parallelism: {tp: 4, sp: true, pp: 1, ep: 8, dp: 64, expert_axis: own, zero: 0}
training: {sequence: 4096, micro_batch: 1, global_batch: 512, precision: bf16, schedule: 1f1b, recompute: none}
)",
                                           "exchanges.yaml", {});
  const Simulated exact = exact_step(scenario), even = even_step(scenario);
  EXPECT_GT(exact.world.ranks.size(), even.world.ranks.size());
  EXPECT_GT(std::abs(exact.timeline.makespan() / even.timeline.makespan() - 1), 1e-4);
  EXPECT_FALSE(relief_is_absorbed(exact.world, even.world, even.dag, even.timeline));
}

TEST(EvenTrees, LeaveTheStepTimeOfRandomClustersWhereTheySaySo) {
  int absorbed = 0, refused = 0;
  for (const RandomCluster& drawn : random_clusters(240, 1, 1)) {
    const Scenario& scenario = drawn.scenario;
    if (scenario.parallelism.zero > 0 || !drawn.features.contains("tree")) continue;
    const Simulated even = even_step(scenario);
    if (even.world.ranks.size() == drawn.folded.ranks.size()) continue;
    const bool same = relief_is_absorbed(drawn.folded, even.world, even.dag, even.timeline);
    ++(same ? absorbed : refused);
    if (!same) continue;
    const Simulated exact = exact_step(scenario);
    EXPECT_NEAR(exact.timeline.makespan(), even.timeline.makespan(), 1e-9 * exact.timeline.makespan()) << drawn.text();
    EXPECT_EQ(compare(exact, even).later, 0) << drawn.text();
  }

  EXPECT_GE(absorbed, 5);
}

}  // namespace
}  // namespace tandem::studies::even_trees_test
