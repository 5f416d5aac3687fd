// A faster machine: never slower where nothing is shared, and hardly where something is.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/end_to_end/metamorphic.h"
#include "tests/end_to_end/random_scenarios.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::metamorphic_speed_test {
namespace {

struct Change {
  const char* name;
  Scenario (*make)(Scenario scenario, double times);
  double times;
};
constexpr Change changes[] = {{"faster GPUs", with_faster_gpus, 1.5},
                              {"wider links", with_wider_links, 1.5},
                              {"less latency", with_latencies, 0.5},
                              {"faster CPUs", with_issue_times, 0.5}};

constexpr double rounding = 1e-9;

/// With a fixed order on each stream, the start of each task is the latest end of those before it: a maximum of sums, in which no
/// shorter task makes another later. So where a task's time depends on none beside it, Graham's anomalies (1969), which come from
/// a list that is dealt out as machines become free, cannot be.
TEST(FasterMachine, NeverSlowsAStepThatSharesNothing) {
  for (const char* mesh :
       {"parallelism.dp=4", "parallelism.dp=16 parallelism.zero=2", "parallelism.tp=4", "parallelism.tp=8 model.kv_heads=8",
        "parallelism.pp=4", "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b", "parallelism.cp=2",
        "parallelism.dp=8 training.framework=megatron-core",
        "parallelism.tp=4 parallelism.sp=true training.framework=torchtitan"}) {
    std::vector<std::string> overrides = words(mesh);
    overrides.emplace_back("training.global_batch=32");
    const Scenario scenario = without_overlap(tiny_cluster(overrides));
    const Seconds before = step_time(scenario);
    for (const Change& change : changes)
      EXPECT_LE(step_time(change.make(scenario, change.times)), before * (1 + rounding)) << change.name << " " << mesh;
  }
}

/// What is shared can be shared otherwise: docs/architecture.md, "A faster machine". The bound is above the largest of thousands.
constexpr double largest_anomaly = 0.05;

/// Returns in how many of the changed steps something became slower.
std::size_t expect_hardly_slower(std::size_t count, std::uint32_t first) {
  std::size_t slower = 0;
  double worst = 0;
  for (const RandomScenario& drawn : random_scenarios(count, first, 1)) {
    const Seconds before = step_time(drawn.scenario);
    for (const Change& change : changes) {
      const double times = step_time(change.make(drawn.scenario, change.times)) / before;
      EXPECT_LE(times, 1 + largest_anomaly) << change.name << " " << drawn.text();
      if (times > 1 + rounding) ++slower;
      worst = std::max(worst, times);
    }
  }
  testing::Test::RecordProperty("slower", static_cast<int>(slower));
  testing::Test::RecordProperty("worst_ppm", static_cast<int>(1e6 * (worst - 1)));
  return slower;
}

constexpr std::size_t few = 20, many = 1000;

TEST(FasterMachine, HardlySlowsAnyStep) { EXPECT_LE(expect_hardly_slower(few, 1), few / 5); }
TEST(SlowFasterMachine, HardlySlowsAnyStep) { EXPECT_LE(expect_hardly_slower(many, 1000), many / 5); }

}  // namespace
}  // namespace tandem::studies::metamorphic_speed_test
