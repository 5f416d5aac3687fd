#include "studies/step/folded_time.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "scenarios/schedules/shorter_schedule.h"
#include "studies/step/simulated_step.h"
#include "studies/step/step_result.h"
#include "tests/end_to_end/equal_results.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/random_steps.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::folded_time_test {
namespace {

/// Returns whether time was folded.
bool expect_equal_when_folded_in_time(const Scenario& scenario, const std::string& what, double of_allocator = 1e-9) {
  const StepResult folded = simulate_step(scenario, true, {.fold_time = true}).result;
  if (folded.run.tasks_simulated == folded.tasks) return false;
  const StepResult whole = simulate_step(scenario, true).result;
  EXPECT_EQ(whole.run.tasks_simulated, whole.tasks) << what;
  expect_equal_results(folded, whole, what, {.allocator = of_allocator});
  return true;
}

TEST(FoldedTime, IsTheWholeStepOnEverySchedule) {
  for (const std::string plan :
       {"parallelism.dp=2 training.schedule=1f1b", "parallelism.pp=4 training.schedule=1f1b",
        "parallelism.pp=4 parallelism.tp=2 parallelism.vpp=2 model.layers=8 training.schedule=interleaved-1f1b",
        "parallelism.pp=4 training.schedule=zb-h1", "parallelism.pp=2 training.schedule=zb-h1 parallelism.zero=1",
        "parallelism.pp=2 parallelism.vpp=2 model.layers=8 training.schedule=zb-v",
        "parallelism.pp=4 model.layers=8 training.schedule=dualpipe",
        "parallelism.pp=2 parallelism.dp=4 training.schedule=1f1b training.framework=megatron-core",
        "parallelism.dp=8 parallelism.zero=3 training.schedule=1f1b training.framework=torchtitan"})
    EXPECT_TRUE(expect_equal_when_folded_in_time(with_micro_batches(tiny_cluster(words(plan)), 96), plan)) << plan;
}

TEST(FoldedTime, IsTheWholeStepOfRandomSteps) {
  std::size_t folded = 0, all = 0;
  for (const RandomStep& step : valid_steps(40).steps) {
    const Scenario scenario = with_micro_batches(tiny_cluster(step.overrides), 64);
    ++all;
    folded += expect_equal_when_folded_in_time(scenario, step.text(), 0.05) ? 1 : 0;
  }
  EXPECT_GE(4 * folded, all) << folded << " of " << all;
}

TEST(FoldedTime, IsTheWholeStepOnRandomClusters) {
  std::size_t folded = 0, all = 0;
  for (const RandomCluster& cluster : random_clusters(24, 11, 1)) {
    ++all;
    folded += expect_equal_when_folded_in_time(with_micro_batches(cluster.scenario, 64), cluster.text()) ? 1 : 0;
  }
  EXPECT_GE(3 * folded, all) << folded << " of " << all;
}

// What is faster is so for the whole step, too. Where a shorter one settles, the whole is not asked: here it is none.
TEST(FoldedTime, FasterStepsAreWholeOnes) {
  const std::vector<Speedup> speedups{{OpKind::gemm, 1.1}, {Axis::pp, 2.0}, {Tier::nic, 1.3}, {sim::PipelineStage{0}, 1.2}};
  for (const auto& [plan, settles] : std::map<std::string, bool>{
           {"parallelism.pp=4 training.schedule=1f1b", true},
           {"parallelism.pp=4 model.layers=8 training.schedule=dualpipe", true},
           {"parallelism.pp=4 parallelism.tp=2 parallelism.vpp=2 model.layers=8 training.schedule=interleaved-1f1b", true},
           {"parallelism.pp=2 training.schedule=gpipe", false}}) {
    const Scenario scenario = with_micro_batches(tiny_cluster(words(plan)), 96);
    const World world = make_world(scenario, true, {.by_every_link = true});
    const Dag dag = lower(scenario, world), none;
    const std::vector<Seconds> whole = sim::makespans(dag, speedups, 1);
    const std::vector<Seconds> folded = makespans_folded_in_time(scenario, world, {settles ? &none : &dag}, speedups, 1);
    for (std::size_t i = 0; i < speedups.size(); ++i)
      EXPECT_NEAR(folded[i], whole[i], 1e-9 * whole[i]) << plan << ": " << speedups[i].name();
  }
}

/// All micro-batches at once, or too few of them.
TEST(FoldedTime, IsNotForStepsWithoutASteadyState) {
  for (const std::string plan :
       {"parallelism.pp=2 training.schedule=gpipe training.global_batch=64",
        "parallelism.pp=4 training.schedule=1f1b training.global_batch=12",
        "parallelism.dp=2 training.documents.mean=8 training.documents.sigma=1 training.global_batch=128"})
    EXPECT_FALSE(scenarios::shorter_schedule(tiny_cluster(words(plan)), 12).has_value()) << plan;
}

TEST(ShorterSchedule, LeavesOutWholeRounds) {
  const auto shorter = scenarios::shorter_schedule(
      tiny_cluster(words("parallelism.pp=4 parallelism.vpp=2 model.layers=8 training.schedule=interleaved-1f1b "
                         "training.global_batch=96")),
      32);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(shorter->period, 4);
  EXPECT_EQ(shorter->micro_batches + shorter->period * shorter->left_out, 96);
  EXPECT_EQ(shorter->micro_batches, 32);
}

}  // namespace
}  // namespace tandem::studies::folded_time_test
