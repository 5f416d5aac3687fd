// Trees that tell no ranks apart: where that is said to leave the step time, it does.

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "sim/simulate.h"
#include "studies/step/exact_replay.h"
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
  return simulated_on(scenario, make_world(scenario, true, {.even_trees = trees_in_question(scenario)}));
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

struct Replayed {
  int earlier = 0, later = 0;  ///< tasks of the exact step, against the even one
  int shifted = 0;             ///< of these, communication that starts at another time
};

/// Expects every task of the exact step to run when the replay says, and where it says nothing as in the even step.
Replayed expect_replayed(const Simulated& exact, const Simulated& even, const RunTimes& others) {
  const auto tasks_by_rank = [](const Dag& dag) {
    std::vector<std::vector<TaskId>> tasks(dag.ranks.size());
    for (TaskId id = 0; id < dag.tasks.size(); ++id) tasks[dag.tasks[id].rank].push_back(id);
    return tasks;
  };
  const auto of_exact = tasks_by_rank(exact.dag), of_even = tasks_by_rank(even.dag);
  const Seconds tolerance = 1e-9 * even.timeline.makespan();
  Replayed replayed;
  int wrong = 0;
  for (RankIndex rank = 0; rank < of_exact.size(); ++rank) {
    const std::vector<TaskId>& alike = of_even[even.world.class_of[exact.dag.ranks[rank].world_rank]];
    EXPECT_EQ(alike.size(), of_exact[rank].size());
    for (std::size_t i = 0; i < alike.size(); ++i) {
      const RunTime before{even.timeline.start[alike[i]], even.timeline.end[alike[i]]};
      const auto found = others.find({rank, alike[i]});
      const RunTime expected = found == others.end() ? before : found->second;
      const RunTime actual{exact.timeline.start[of_exact[rank][i]], exact.timeline.end[of_exact[rank][i]]};
      if (std::abs(actual.start - expected.start) > tolerance || std::abs(actual.end - expected.end) > tolerance) ++wrong;
      if (actual.end < before.end - tolerance) ++replayed.earlier;
      if (actual.end > before.end + tolerance) ++replayed.later;
      if (is_communication(even.dag.tasks[alike[i]].op) && std::abs(actual.start - before.start) > tolerance) ++replayed.shifted;
    }
  }
  EXPECT_EQ(wrong, 0);
  return replayed;
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
    const std::optional<RunTimes> others = replay_exactly(exact.world, even.world, even.dag, even.timeline);
    const Replayed replayed = expect_replayed(exact, even, others.value());
    EXPECT_EQ(replayed.later, 0) << order;
    EXPECT_GT(replayed.earlier, 0) << order;
    EXPECT_LT(replayed.earlier, 100) << order;
  }
}

// With recompute the passes of a root begin ahead of the others: its node gathers qkv early, and its keys reach the next node
// while that still computes the block before, which takes longer for it.
TEST(EvenTrees, RecomputeShiftsCollectivesOfRoots) {
  for (const char* order : {stages_outermost, replicas_outermost}) {
    const std::vector<std::string> recompute = {"training.recompute=full"};
    const Scenario scenario = mixture(0, order, recompute);
    const StepResult folded = simulate_step(scenario, true).result;
    EXPECT_EQ(folded.rank_classes, simulate_step(mixture(1, order, recompute), true).result.rank_classes) << order;
    const Simulated exact = exact_step(scenario), even = even_step(scenario);
    EXPECT_GE(exact.world.ranks.size(), 40U) << order;
    EXPECT_NEAR(exact.timeline.makespan(), folded.step_time, 1e-12 * folded.step_time) << order;
    const std::optional<RunTimes> others = replay_exactly(exact.world, even.world, even.dag, even.timeline);
    const Replayed replayed = expect_replayed(exact, even, others.value());
    EXPECT_GT(replayed.earlier, 0) << order;
    EXPECT_GT(replayed.shifted, 0) << order;
  }
}

// A CPU that issues kernels is not followed.
TEST(EvenTrees, AreNotTrustedWhereCpusIssueKernels) {
  const Scenario scenario = mixture(0, stages_outermost, {"training.recompute=full", "training.framework=megatron-core"});
  const Simulated even = even_step(scenario);
  ASSERT_FALSE(even.dag.software.issues_for_free());
  EXPECT_FALSE(relief_is_absorbed(make_world(scenario, true), even.world, even.dag, even.timeline));
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

/// What the replay says of steps.
struct Verdicts {
  int absorbed = 0, refused = 0;
  int given_up = 0;   ///< of those refused, without the times of all tasks
  int shifted = 0;    ///< of those absorbed, with communication that starts at other times
  int with_late = 0;  ///< of those absorbed, with tasks that end later
};

void judge(const Scenario& scenario, const World& folded, const std::string& text, Verdicts& verdicts) {
  const Simulated even = even_step(scenario);
  if (even.world.ranks.size() == folded.ranks.size()) return;
  SCOPED_TRACE(text);
  const bool same = relief_is_absorbed(folded, even.world, even.dag, even.timeline);
  const std::optional<RunTimes> others = replay_exactly(folded, even.world, even.dag, even.timeline);
  ++(same ? verdicts.absorbed : verdicts.refused);
  if (!others) {
    EXPECT_FALSE(same);
    ++verdicts.given_up;
    return;
  }
  const Simulated exact = exact_step(scenario);
  const double ratio = exact.timeline.makespan() / even.timeline.makespan();
  // The replay leaves nothing out but rounding: it refuses for less than 1e-9 of a step, too.
  if (same)
    EXPECT_LE(std::abs(ratio - 1), 1e-10);
  else
    EXPECT_GE(std::abs(ratio - 1), 1e-12);
  const Replayed replayed = expect_replayed(exact, even, *others);
  if (same && replayed.shifted > 0) ++verdicts.shifted;
  if (same && replayed.later > 0) ++verdicts.with_late;
}

TEST(EvenTrees, LeaveTheStepTimeOfRandomClustersWhereTheySaySo) {
  Verdicts verdicts;
  for (const RandomCluster& drawn : random_clusters(240, 1, 1)) {
    if (drawn.scenario.parallelism.zero > 0 || !drawn.features.contains("tree")) continue;
    judge(drawn.scenario, drawn.folded, drawn.text(), verdicts);
  }
  EXPECT_GE(verdicts.absorbed, 5);
}

/// Mixtures and dense models on whole nodes, whose gradients are large enough for trees and whose passes communicate on every
/// axis.
std::vector<std::string> drawn_mesh(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<const char*> values) -> std::string {
    return *(values.begin() + random() % values.size());
  };
  const int pp = std::stoi(one_of({"1", "2", "2", "4"})), ep = std::stoi(one_of({"1", "2", "4"})),
            cp = std::stoi(one_of({"1", "2", "4"})), dp = std::stoi(one_of({"4", "8"})), tp = std::stoi(one_of({"4", "8", "8"}));
  const auto text = [](int number) { return std::to_string(number); };
  std::vector<std::string> overrides = {
      "cluster.gpus=" + text(std::max(8, pp * ep * cp * dp * tp)),
      "parallelism.pp=" + text(pp),
      "parallelism.cp=" + text(cp),
      "parallelism.dp=" + text(dp),
      "parallelism.tp=" + text(tp),
      "parallelism.order=" + one_of({stages_outermost, replicas_outermost}),
      "model.layers=" + text(pp * std::stoi(one_of({"1", "2"}))),
      "model.hidden=" + one_of({"2048", "4096", "6144"}),
      "training.global_batch=" + text(dp * std::max(1, ep) * std::stoi(one_of({"1", "2", "4"}))),
      "training.sequence=" + one_of({"4096", "16384"}),
      "training.recompute=" + one_of({"none", "full", "full", "selective"}),
      "training.bucket_MB=" + one_of({"25", "100", "1000"}),
  };
  if (ep > 1)
    overrides.insert(overrides.end(), {"parallelism.ep=" + text(ep), "parallelism.expert_axis=own",
                                       "model.moe={experts: 8, top_k: 2, ffn: 8192}", "parallelism.etp=" + one_of({"1", "tp"})});
  if (overrides.back() == "parallelism.etp=tp") overrides.back() = "parallelism.etp=" + text(tp);
  return overrides;
}

TEST(EvenTrees, LeaveTheStepTimeOfRandomMeshesWhereTheySaySo) {
  Verdicts verdicts;
  std::mt19937 random(7);
  for (int draw = 0; draw < 120; ++draw) {
    const std::vector<std::string> overrides = drawn_mesh(random);
    std::string text;
    for (const std::string& one : overrides) text += " '" + one + "'";
    const Scenario scenario = parse_scenario(R"(
name: drawn
model: {layers: 4, hidden: 4096, heads: 32, kv_heads: 8, head_dim: 128, ffn: 16384, gated: true, vocab: 32768, norm: rms}
cluster: {preset: dgx-h100, gpus: 64}
parallelism: {tp: 8, sp: true, zero: 0}
training: {micro_batch: 1, precision: bf16, schedule: 1f1b}
)",
                                             "drawn.yaml", overrides);
    const World folded = make_world(scenario, true);
    if (folded.ranks.size() > 128) continue;
    judge(scenario, folded, text, verdicts);
  }
  EXPECT_GE(verdicts.absorbed, 10);
  EXPECT_GE(verdicts.shifted, 5);
  EXPECT_GE(verdicts.refused, 5);
}

}  // namespace
}  // namespace tandem::studies::even_trees_test
