// A step with twice the micro-batches, how large a step becomes, and a machine that is slower by a factor throughout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "scenarios/lowering/lower.h"
#include "scenarios/lowering/step_size.h"
#include "tests/end_to_end/metamorphic.h"
#include "tests/end_to_end/random_scenarios.h"

namespace tandem::studies::metamorphic_size_test {
namespace {

constexpr double rounding = 1e-9;
constexpr std::size_t few = 30, many = 1500;

/// Two steps one after the other do the work of one with twice the micro-batches, and fill and drain the pipeline, reduce
/// gradients and update weights once more; and in the longer step every stage does all that it does in the shorter one.
void expect_at_most_twice_as_long(const RandomScenario& drawn) {
  const Seconds once = step_time(drawn.scenario);
  Scenario longer = drawn.scenario;
  longer.training.global_batch *= 2;
  const Seconds twice = step_time(longer);
  EXPECT_LE(twice, 2 * once * (1 + rounding)) << drawn.text();
  EXPECT_GE(twice, once * (1 - rounding)) << drawn.text();
}

TEST(TwiceTheMicroBatches, TakeAtMostTwiceAsLong) {
  for (const RandomScenario& drawn : random_scenarios(few, 1, 1)) expect_at_most_twice_as_long(drawn);
}
TEST(SlowTwiceTheMicroBatches, TakeAtMostTwiceAsLong) {
  for (const RandomScenario& drawn : random_scenarios(many, 1000, 1)) expect_at_most_twice_as_long(drawn);
}

/// How far the size is off that is known before: of tasks or buffers, whichever is further, as a share of those there are. See
/// step_size.h for where it is not exact.
double error_of_size(const RandomScenario& drawn) {
  const World world = make_world(drawn.scenario, true);
  const Dag dag = lower(drawn.scenario, world);
  const scenarios::StepSize size = size_of_step(drawn.scenario, world).step;
  const auto tasks = static_cast<double>(dag.tasks.size()), buffers = static_cast<double>(dag.buffers.size());
  return std::max(std::abs(size.tasks / tasks - 1), std::abs(size.buffers / buffers - 1));
}

constexpr double usual_error = 0.3;

TEST(SizeOfAStep, IsKnownBeforeItIsLowered) {
  for (const RandomScenario& drawn : random_scenarios(few, 1, 1)) EXPECT_LE(error_of_size(drawn), usual_error) << drawn.text();
}
TEST(SlowSizeOfAStep, IsKnownBeforeItIsLowered) {
  std::size_t further_off = 0;
  for (const RandomScenario& drawn : random_scenarios(many, 1000, 1)) {
    const double error = error_of_size(drawn);
    EXPECT_LE(error, 0.5) << drawn.text();
    further_off += error > usual_error ? 1 : 0;
  }
  EXPECT_LE(further_off, 2U);
}

/// A step of one GPU, with all that its model and its training have.
std::optional<Scenario> alone(const RandomScenario& drawn) {
  RandomScenario one = drawn;
  std::erase_if(one.overrides, [](const std::string& text) {
    return text.starts_with("parallelism.") || text.starts_with("faults.") || text.starts_with("cluster.fabric.") ||
           text.starts_with("training.schedule=") || text.starts_with("training.sync");
  });
  one.overrides.emplace_back("parallelism.zero=0");
  return with_changes(one, {});
}

/// Where a kernel takes k times as long, what moves its bytes and what issues it, too, all times are k times as long. That is so
/// of one GPU alone: NCCL's constants are times and rates of their own, which no field of a scenario scales.
std::size_t expect_units_scale(std::size_t count, std::uint32_t first) {
  std::size_t compared = 0;
  for (const RandomScenario& drawn : random_scenarios(count, first, 1)) {
    const std::optional<Scenario> scenario = alone(drawn);
    if (!scenario) continue;
    const Seconds time = step_time(*scenario);
    for (const double k : {0.5, 3.0, 1000.0}) {
      const Scenario slower = with_issue_times(with_latencies(with_wider_links(with_faster_gpus(*scenario, 1 / k), 1 / k), k), k);
      EXPECT_NEAR(step_time(slower) / k, time, 1e-9 * time) << k << " " << drawn.text();
    }
    ++compared;
  }
  return compared;
}

TEST(Units, Scale) { EXPECT_GE(expect_units_scale(few, 1), few / 3); }
TEST(SlowUnits, Scale) { EXPECT_GE(expect_units_scale(many / 2, 1000), many / 6); }

}  // namespace
}  // namespace tandem::studies::metamorphic_size_test
