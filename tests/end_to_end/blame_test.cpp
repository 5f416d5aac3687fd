// What would be gained from one thing being faster, where it can be told in advance.

#include "sim/blame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/simulate.h"
#include "studies/report/blame_beside.h"
#include "studies/step/faster_step.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::blame_test {
namespace {

constexpr double factor = 1.1;

struct Step {
  explicit Step(const Scenario& scenario)
      : dag(lower(scenario, make_world(scenario, true))), timeline(simulate(dag).timeline), time(timeline.makespan()) {}
  Dag dag;
  Timeline timeline;
  Seconds time;
};

std::vector<Blame> blame_each(const Dag& dag, const Timeline& timeline, std::span<const Speedup> speedups) {
  return blame(dag, timeline, speedups, makespans(dag, speedups, 2));
}

std::vector<Blame> blame_all(const Step& step) {
  return blame_each(step.dag, step.timeline, blame_candidates(step.dag, step.timeline, {.factor = factor, .most = 99}));
}

TEST(BlameOfAStep, OnOneRankIsThePartOfEachKind) {
  const Step step(tiny_cluster({"training.recompute=selective"}));
  Seconds gained = 0;
  const std::vector<Blame> blamed = blame_all(step);
  EXPECT_GE(blamed.size(), 8U);
  for (const Blame& one : blamed) {
    ASSERT_EQ(one.speedup.group(), "kernel");
    Seconds busy = 0;
    for (TaskId id = 0; id < step.dag.tasks.size(); ++id) {
      if (step.dag.tasks[id].op == std::get<OpKind>(one.speedup.of)) busy += step.timeline.duration(id);
    }
    EXPECT_GE(one.gained, -1e-9 * step.time);
    EXPECT_NEAR(one.gained, busy * (1 - 1 / factor), 1e-9 * step.time) << one.speedup.name();
    gained += one.gained;
  }
  EXPECT_LE(gained, step.time * (1 - 1 / factor) * (1 + 1e-9));
  EXPECT_TRUE(std::ranges::is_sorted(blamed, std::ranges::greater(), &Blame::gained));

  const std::vector<Speedup> everything{{PipelineStage{0}, factor}};
  EXPECT_NEAR(makespans(step.dag, everything, 1).front(), step.time / factor, 1e-12 * step.time);
}

// GPipe with stages of t_s a micro-batch takes (m - 1) max t_s + sum t_s, forward and backward alike: what the slowest stage
// gains counts m times, as long as it stays the slowest.
TEST(BlameOfAStep, OfTheSlowestStageCountsForEveryMicroBatch) {
  constexpr int stages = 4, micro_batches = 8;
  for (const std::int64_t slow : {0, 2}) {
    Scenario scenario = pure_pipeline(stages, micro_batches, "gpipe");
    scenario.slow_gpus.push_back({.rank = slow, .factor = 0.8});
    const Step step(scenario);
    const std::vector<Speedup> candidates = blame_candidates(step.dag, step.timeline);
    ASSERT_FALSE(candidates.empty());
    EXPECT_EQ(candidates.front().name(), "stage " + std::to_string(slow));
    Seconds busy = 0;
    for (TaskId id = 0; id < step.dag.tasks.size(); ++id) {
      const Task& task = step.dag.tasks[id];
      if (!is_communication(task.op) && step.dag.ranks[task.rank].pp == slow) busy += step.timeline.duration(id);
    }
    const Seconds expected = busy * (1 - 1 / factor);
    const std::vector<Blame> blamed = blame_each(step.dag, step.timeline, std::span(candidates).first(1));
    EXPECT_NEAR(blamed.front().gained, expected, 5e-3 * expected);
    // Another stage counts once: it only makes the pipeline shorter.
    const std::vector<Speedup> other{{PipelineStage{1}, factor}};
    EXPECT_LT(blame_each(step.dag, step.timeline, other).front().gained, expected / 4);
  }
}

TEST(BlameOfAStep, TiersAndAxesThatAreNotUsedGainNothing) {
  const Step step(tiny_cluster(words("parallelism.tp=2 parallelism.dp=2")));  // in one node
  const std::vector<Speedup> unused{{Tier::nic, factor}, {Tier::spine, factor}, {Axis::pp, factor}, {Axis::cp, factor}};
  for (const Blame& one : blame_each(step.dag, step.timeline, unused)) EXPECT_EQ(one.gained, 0) << one.speedup.name();
  for (const Speedup& candidate : blame_candidates(step.dag, step.timeline))
    EXPECT_EQ(std::ranges::count(unused, candidate.name(), &Speedup::name), 0) << candidate.name();
}

// With faster NICs the uplinks of leaves are too slow for all of them. A fold by every link is right about that, too; whatever
// makes no link faster is simulated on the coarser fold.
TEST(BlameOfAStep, OfFoldsIsThatOfAllRanks) {
  std::vector<std::string> overrides = words(
      "parallelism.tp=4 parallelism.pp=2 parallelism.dp=8 training.global_batch=16 model.hidden=1024 model.ffn=4096 "
      "training.sequence=512 cluster.fabric.leaf_ports=4");
  overrides.emplace_back("faults.slow_gpu={rank: 13, factor: 0.5}");
  const Scenario scenario = tiny_cluster(overrides);
  const World coarse = make_world(scenario, true), by_every_link = make_world(scenario, true, {.by_every_link = true});
  EXPECT_GT(by_every_link.ranks.size(), coarse.ranks.size());
  EXPECT_FALSE(coarse.options.by_every_link);
  const std::vector<Speedup> faster{{Tier::nic, 1.5},        {OpKind::gemm, 1.5}, {Tier::nic, 8},  {Tier::leaf, 1.5},
                                    {PipelineStage{1}, 1.5}, {Tier::nvlink, 2},   {Axis::dp, 1.5}, {}};
  const std::vector<Seconds> whole = makespans(lower(scenario, make_world(scenario, false)), faster, 2);
  const Dag dag = lower(scenario, coarse);
  const Timeline timeline = simulate(dag).timeline;
  for (const std::size_t jobs : {1U, 2U, 9U}) {
    const std::vector<Seconds> folded =
        faster_step_times(scenario, {coarse, dag, timeline, true, Collectives::fluid}, faster, jobs);
    for (std::size_t i = 0; i < faster.size(); ++i) EXPECT_NEAR(folded[i], whole[i], 1e-9 * whole[i]) << faster[i].name();
  }
}

TEST(BlameOfAStep, IsThatOfTheStepThatWasToldOfLast) {
  BlameBeside beside;
  EXPECT_TRUE(beside.found().empty());
  for (const char* plan : {"parallelism.dp=2", "parallelism.pp=2"}) {
    const Scenario scenario = tiny_cluster(words(plan));
    simulate_step(scenario, true, {.simulated = [&](const FreshStep& step) { beside.begin(scenario, step); }});
  }
  const Step step(tiny_cluster({"parallelism.pp=2"}));
  const std::vector<Blame> told = beside.found();
  const std::vector<Blame> expected = blame_each(step.dag, step.timeline, blame_candidates(step.dag, step.timeline));
  ASSERT_EQ(told.size(), expected.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].speedup.name(), expected[i].speedup.name());
    EXPECT_EQ(told[i].gained, expected[i].gained);
  }
}

TEST(BlameOfAStep, OfStepsInARowIsThatOfOne) {
  const Scenario scenario = tiny_cluster({"parallelism.zero=0"});
  const World world = make_world(scenario, true);
  const Dag one = lower(scenario, world), three = lower(scenario, world, {.count = 3});
  const std::vector<Speedup> gemm{{OpKind::gemm, factor}};
  const Seconds of_one = blame_each(one, simulate(one).timeline, gemm).front().gained;
  EXPECT_GT(of_one, 0);
  EXPECT_NEAR(blame_each(three, simulate(three).timeline, gemm).front().gained, of_one, 1e-9 * of_one);
}

}  // namespace
}  // namespace tandem::studies::blame_test
