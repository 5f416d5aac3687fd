// A step simulated with measured kernels: on one rank it lasts as long as they do.
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>

#include "cli/calibrate/kernel_plan.h"
#include "scenarios/load.h"
#include "scenarios/lowering/lower.h"
#include "sim/bounds.h"
#include "sim/kernel_times.h"
#include "sim/simulate.h"
#include "tests/end_to_end/tiny.h"
#include "tests/traces/temporary_folder.h"
#include "traces/dag_file.h"
#include "traces/profile_file.h"

namespace tandem {
namespace {

Dag lowered(const Scenario& scenario) { return lower(scenario, make_world(scenario, false)); }

/// Every kernel of the scenario, with random times.
Profile random_profile(const Scenario& scenario) {
  KernelPlan plan(1'000'000'000);
  add_scenario(scenario, plan);
  std::mt19937 random(1);
  Profile profile;
  for (const TimedKernel& kernel : plan.kernels()) {
    const Seconds time = std::uniform_real_distribution(1e-6, 1e-3)(random);
    profile.kernels.push_back({kernel, {time, time, time, 1}});
  }
  return profile;
}

class WithProfile : public testing::Test {
 protected:
  TemporaryFolder folder_;

  /// The tiny model on one rank, its kernels as in `profile`.
  Scenario scenario_with(const Profile& profile, std::vector<std::string> overrides = {}) {
    std::ofstream(folder_ / "p", std::ios::binary) << to_bytes(profile);
    overrides.push_back("cluster.profile=" + (folder_ / "p"));
    return tiny_model(overrides);
  }
};

TEST_F(WithProfile, ASerialStepIsTheSumOfItsKernels) {
  const Profile profile = random_profile(tiny_model({}));
  const Dag dag = lowered(scenario_with(profile));
  std::map<KernelKey, Seconds> times;
  for (const auto& [kernel, timing] : profile.kernels) times[key_of(kernel)] = timing.median;
  Seconds sum = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) sum += times.at(key_of(kernel_of(dag, id)));
  const Timeline timeline = simulate(dag).timeline;
  EXPECT_NEAR(timeline.makespan(), sum, 1e-9 * sum);
  EXPECT_LE(lower_bound(dag), sum * (1 + 1e-9));
  EXPECT_NEAR(upper_bound(dag, timeline), sum, 1e-9 * sum);
}

TEST_F(WithProfile, ASlowGpuDividesMeasuredTimes) {
  const Profile profile = random_profile(tiny_model({}));
  const Seconds healthy = simulate(lowered(scenario_with(profile))).timeline.makespan();
  const Seconds slow = simulate(lowered(scenario_with(profile, {"faults.slow_gpu={rank: 0, factor: 0.25}"}))).timeline.makespan();
  EXPECT_NEAR(slow, 4 * healthy, 1e-9 * slow);
}

TEST_F(WithProfile, FoldedIsUnfolded) {
  const std::vector<std::string> parallel{"parallelism.dp=2", "parallelism.pp=2", "parallelism.tp=2"};
  const Scenario scenario = scenario_with(random_profile(tiny_model(parallel)), parallel);
  const Seconds unfolded = simulate(lowered(scenario)).timeline.makespan();
  EXPECT_NEAR(simulate(lower(scenario, make_world(scenario, true))).timeline.makespan(), unfolded, 1e-9 * unfolded);
}

TEST_F(WithProfile, ADagFileCarriesIt) {
  const Dag dag = lowered(scenario_with(random_profile(tiny_model({}))));
  std::ofstream(folder_ / "step.dag", std::ios::binary) << to_bytes(dag);
  const Dag read = read_dag(folder_ / "step.dag");
  EXPECT_FALSE(read.devices.front().measured.empty());
  EXPECT_EQ(simulate(read).timeline.end, simulate(dag).timeline.end);
}

TEST_F(WithProfile, UnmeasuredSizesLieBetweenMeasuredOnes) {
  // Measured at both neighbours of the width that is simulated, by the same known cost.
  KernelPlan plan(1'000'000'000);
  for (const char* hidden : {"model.hidden=32", "model.hidden=64"}) add_scenario(tiny_model({hidden}), plan);
  Profile profile;
  const auto known = [](const TimedKernel& kernel) {
    return 1e-6 + cost_of(kernel).flops / 1e11 + static_cast<double>(cost_of(kernel).bytes) / 1e10;
  };
  for (const TimedKernel& kernel : plan.kernels())
    profile.kernels.push_back({kernel, {known(kernel), known(kernel), known(kernel), 1}});
  const Dag dag = lowered(scenario_with(profile, {"model.hidden=48"}));
  const KernelTimes times(dag);
  Seconds expected = 0, found = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    expected += known(kernel_of(dag, id));
    found += times.of(id);
  }
  EXPECT_NEAR(found, expected, 0.1 * expected);
  EXPECT_NE(found, expected);
}

}  // namespace
}  // namespace tandem
