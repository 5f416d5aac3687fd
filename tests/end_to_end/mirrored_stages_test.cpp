// A step of two copies of the model (dualpipe), of which one of two mirrored stages is simulated, is that of all stages.

#include "scenarios/mesh/mirrored_stages.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/analysis/critical_path.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/equal_results.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/random_steps.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::mirrored_stages_test {
namespace {

using scenarios::MirroredStages;

const std::string four_stages = "training.schedule=dualpipe parallelism.pp=4 model.layers=8 training.global_batch=32 ";

World with_mirrors(const Scenario& scenario) { return make_world(scenario, true, {.folds_mirrors = true}); }

std::size_t classes(const World& world) { return world.ranks.size(); }

/// In the upper bound each rank does one task at a time, of those that start at once the first by its number. Of two stages that
/// send to each other at once, one may have a kernel between its tasks and the other not.
constexpr OrderAtOnce order{.upper_bound = 0.02};

StepResult result_of(const Scenario& scenario, bool mirrors) {
  return simulate_step(scenario, true, {.fold_mirrors = mirrors}).result;
}

struct Plan {
  std::vector<std::string> overrides;
  std::size_t classes;  ///< of ranks
};

std::vector<Plan> plans() {
  const auto with = [](const std::string& plan, const std::vector<std::string>& more = {}) {
    std::vector<std::string> overrides = words(four_stages + plan);
    overrides.insert(overrides.end(), more.begin(), more.end());
    return overrides;
  };
  const std::string moe = "model.moe={experts: 8, top_k: 2, ffn: 24}";
  return {
      {with(""), 2},
      {with("parallelism.pp=2"), 1},
      {with("parallelism.pp=8 training.global_batch=64"), 4},
      {with("parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.zero=1"), 2},
      {with("parallelism.dp=2 parallelism.zero=3"), 2},
      {with("parallelism.dp=4 parallelism.zero=1 training.overlap.dp=false"), 2},
      {with("parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.004"), 2},
      {with("parallelism.cp=2 parallelism.zero=1"), 2},
      {with("training.overlap.pp=false parallelism.dp=2 parallelism.zero=2"), 2},
      {with("model.mtp_depth=1"), 2},
      {with("training.optimizer=adafactor parallelism.dp=2 parallelism.zero=1"), 2},
      {with("training.offload.optimizer=0.5 parallelism.dp=2 parallelism.zero=1 cluster.host.link_GBps=55 "
            "cluster.host.memory_GBps=300"),
       2},
      {with("parallelism.ep=2 parallelism.dp=2 parallelism.zero=1 training.overlap.ep=true", {moe}), 2},
      {with("parallelism.ep=2 parallelism.dp=2 parallelism.zero=1 model.moe.expert_bias=true model.moe.score_function=sigmoid",
            {moe}),
       2},
      {with("training.recompute=full training.framework=megatron-core"), 2}};
}

TEST(MirroredStages, RunEveryTaskWhenTheOthersDo) {
  for (const Plan& plan : plans()) {
    const Scenario scenario = tiny_cluster(plan.overrides);
    const World folded = with_mirrors(scenario);
    EXPECT_EQ(difference_when_folded(scenario, folded), "") << testing::PrintToString(plan.overrides);
    EXPECT_EQ(classes(folded), plan.classes) << testing::PrintToString(plan.overrides);
    EXPECT_EQ(classes(make_world(scenario, true)), 2 * plan.classes) << testing::PrintToString(plan.overrides);
  }
}

TEST(MirroredStages, LeaveTheResult) {
  for (const Plan& plan : plans()) {
    const Scenario scenario = tiny_cluster(plan.overrides);
    expect_equal_results(result_of(scenario, true), result_of(scenario, false), testing::PrintToString(plan.overrides), order);
  }
}

TEST(MirroredStages, LeaveTheResultOfRandomSteps) {
  std::size_t compared = 0;
  for (const RandomStep& step : valid_steps(120).steps) {
    const Scenario scenario = tiny_cluster(step.overrides);
    if (scenario.training.schedule != ScheduleKind::dualpipe) continue;
    const World folded = with_mirrors(scenario);
    EXPECT_EQ(difference_when_folded(scenario, folded), "") << step.text();
    expect_equal_results(result_of(scenario, true), result_of(scenario, false), step.text(),
                         {.allocator = 0.05, .upper_bound = 0.02});
    compared += 2 * classes(folded) == classes(make_world(scenario, true)) ? 1 : 0;
  }
  EXPECT_GE(compared, 6U);
}

TEST(MirroredStages, RunEveryTaskWhenTheOthersDoOnRandomClusters) {
  std::size_t alike = 0, apart = 0;
  for (const RandomCluster& cluster : random_clusters(48, 3, 1)) {
    const std::int64_t pp = cluster.scenario.parallelism.pp;
    if (pp == 1 || cluster.scenario.parallelism.vpp > 1) continue;
    std::vector<std::string> overrides = cluster.overrides;
    overrides.emplace_back("training.schedule=dualpipe");
    overrides.push_back("model.layers=" + std::to_string(2 * pp));
    overrides.push_back("training.global_batch=" + std::to_string(64 * pp));
    const Scenario scenario = tiny_cluster(overrides);
    const World folded = with_mirrors(scenario);
    EXPECT_EQ(difference_when_folded(scenario, folded), "") << cluster.text();
    const std::size_t all = classes(make_world(scenario, true)), some = classes(folded);
    ++(some < all ? alike : apart);
  }
  EXPECT_GE(alike, 5U);
  EXPECT_GE(apart, 5U);
}

/// A fault on one stage, of one replica, leaves none like its mirror: all wait for it in their own ways.
TEST(MirroredStages, AreToldApartByAFaultOnOneOfThem) {
  const std::string two_replicas = four_stages + "parallelism.dp=2 parallelism.tp=8 model.kv_heads=8";
  std::vector<std::string> overrides = words(two_replicas);
  EXPECT_EQ(classes(with_mirrors(tiny_cluster(overrides))), 2U);
  overrides.emplace_back("faults.slow_gpu={rank: 3, factor: 0.5}");
  const Scenario scenario = tiny_cluster(overrides);
  const World folded = with_mirrors(scenario);
  EXPECT_EQ(classes(folded), classes(make_world(scenario, true)));
  EXPECT_EQ(difference_when_folded(scenario, folded), "");
}

/// What would be wrong: a slow GPU on one stage alone, on the classes of a cluster without it.
TEST(MirroredStages, MustNotBeMergedWhereTheyDiffer) {
  std::vector<std::string> overrides = words(four_stages + "parallelism.dp=2");
  const World blind = with_mirrors(tiny_cluster(overrides));
  overrides.emplace_back("faults.slow_gpu={rank: 1, factor: 0.5}");
  EXPECT_NE(difference_when_folded(tiny_cluster(overrides), blind), "");
}

/// Where a path goes, piece by piece.
using Way = std::vector<std::pair<std::int32_t, std::string>>;

Way way_of(const SimulatedStep& step, bool reflected) {
  Way way;
  for (const PathSegment& segment : critical_path(step.dag, step.timeline)) {
    const std::int32_t stage = reflected ? step.dag.info.stages - 1 - segment.stage : segment.stage;
    const std::string kind = kind_of(step.dag, segment);
    if (segment.task != no_id && (way.empty() || way.back() != std::pair(stage, kind))) way.emplace_back(stage, kind);
  }
  return way;
}

// Where a path may as well go through one stage as through its mirror, it may go through either.
TEST(MirroredStages, LeaveThePathThatGoesFromStageToStage) {
  for (const std::string plan : {"", "parallelism.pp=8 training.global_batch=64", "parallelism.dp=2 parallelism.zero=1",
                                 "training.overlap.pp=false parallelism.dp=2"}) {
    const Scenario scenario = tiny_cluster(words(four_stages + plan));
    for (const bool in_time : {false, true}) {
      const SimulatedStep folded = simulate_step(scenario, true, {.fold_time = in_time, .fold_mirrors = true});
      const Way way = way_of(folded, false), of_all = way_of(simulate_step(scenario, true), false);
      EXPECT_TRUE(way == of_all || way_of(folded, true) == of_all) << plan << ": " << testing::PrintToString(way) << "\n"
                                                                   << testing::PrintToString(of_all);
    }
  }
}

TEST(MirroredStages, AreCountedByStage) {
  const World world = with_mirrors(tiny_cluster(words(four_stages + "parallelism.dp=2")));
  ASSERT_EQ(classes(world), 2U);
  for (const Rank& rank : world.ranks) {
    const auto shares = rank.by_stage(4);
    EXPECT_EQ(shares[0].stage + shares[1].stage, 3);
    EXPECT_EQ(shares[0].ranks, 2U);
    EXPECT_EQ(shares[1].ranks, 2U);
  }
}

TEST(MirroredStages, AreNoneWithoutASecondCopyOrWhereMicroBatchesDiffer) {
  for (const std::string plan : {"parallelism.pp=4", "parallelism.pp=2 parallelism.vpp=2 model.layers=8 training.schedule=zb-v"})
    EXPECT_FALSE(MirroredStages(tiny_cluster(words(plan))).is_mirror(3)) << plan;
  EXPECT_FALSE(
      MirroredStages(tiny_cluster(words(four_stages + "training.documents.mean=8 training.documents.sigma=1"))).is_mirror(3));
  const MirroredStages mirrors(tiny_cluster(words(four_stages)));
  EXPECT_FALSE(mirrors.is_mirror(1));
  EXPECT_TRUE(mirrors.is_mirror(2));
  EXPECT_EQ(mirrors.program(3), 0);
  for (std::size_t slot = 0; slot < scenarios::slot_count; ++slot) {
    const auto here = static_cast<scenarios::Slot>(slot);
    EXPECT_EQ(mirrors.seen(here, 1), here);
    EXPECT_EQ(mirrors.seen(mirrors.seen(here, 3), 3), here);
  }
}

}  // namespace
}  // namespace tandem::studies::mirrored_stages_test
