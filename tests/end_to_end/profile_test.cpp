// A step simulated with measured kernels: on one rank it lasts as long as they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "sim/bounds.h"
#include "sim/kernel_times.h"
#include "sim/simulate.h"
#include "studies/calibrate/kernel_plan.h"
#include "tests/end_to_end/tiny.h"
#include "tests/runtime/temporary_folder.h"
#include "traces/dag_file.h"
#include "traces/profile_file.h"

namespace tandem::studies::profile_test {
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

Profile profile_of_site(double kernels, double communication, Seconds overhead) {
  Profile profile;
  profile.site.runs = 1;
  profile.site.kernels = kernels;
  profile.site.communication = communication;
  profile.site.overhead = overhead;
  return profile;
}

TEST_F(WithProfile, ASitesKernelsTakeSoManyTimesAsLong) {
  const Seconds usual = simulate(lowered(tiny_model({}))).timeline.makespan();
  const Seconds slow = simulate(lowered(scenario_with(profile_of_site(1.25, 1, 0)))).timeline.makespan();
  EXPECT_NEAR(slow, 1.25 * usual, 1e-9 * usual);
}

// All that a step does takes twice as long, after an overhead that passes before it begins; on any mesh, folded or not.
TEST_F(WithProfile, ASiteScalesTheStepAndBeginsItLater) {
  constexpr Seconds overhead = 0.125;
  for (const std::vector<std::string>& mesh :
       {std::vector<std::string>{"parallelism.dp=2", "parallelism.pp=2", "parallelism.tp=2"},
        std::vector<std::string>{"parallelism.dp=8", "parallelism.zero=0"}}) {
    const Timeline usual = simulate(lowered(tiny_model(mesh))).timeline;
    const Scenario scenario = scenario_with(profile_of_site(2, 2, overhead), mesh);
    const Dag dag = lowered(scenario);
    const Timeline timeline = simulate(dag).timeline;
    EXPECT_NEAR(timeline.makespan(), overhead + 2 * usual.makespan(), 1e-6 * timeline.makespan());
    EXPECT_GE(*std::ranges::min_element(timeline.start), overhead);
    EXPECT_LE(lower_bound(dag), timeline.makespan() * (1 + 1e-9));
    EXPECT_GE(upper_bound(dag, timeline), timeline.makespan() * (1 - 1e-9));
    const Timeline folded = simulate(lower(scenario, make_world(scenario, true))).timeline;
    EXPECT_NEAR(folded.makespan(), timeline.makespan(), 1e-9 * timeline.makespan());
  }
}

class WithCollectives : public WithProfile {
 protected:
  static MeasuredCollective measured(OpKind op, std::int32_t members, std::int32_t machines, Bytes bytes, Seconds time) {
    return {.op = op, .members = members, .machines = machines, .bytes = bytes, .timing = {time, time, time, 1}};
  }
  /// On DGX H100, with these measured collectives and no measured kernels.
  Scenario scenario_of(std::vector<MeasuredCollective> collectives, std::vector<std::string> overrides) {
    std::ofstream(folder_ / "p", std::ios::binary) << to_bytes(Profile{{}, {}, std::move(collectives), {}});
    overrides.push_back("cluster.profile=" + (folder_ / "p"));
    return tiny_cluster(overrides);
  }
  /// By operation, members, and bytes: how long each lasted.
  using Times = std::map<std::tuple<OpKind, std::size_t, Bytes>, std::vector<Seconds>>;
  static Times times_of(const Dag& dag) {
    const Timeline timeline = simulate(dag).timeline;
    Times times;
    for (GroupId group = 0; group < dag.groups.size(); ++group) {
      const TaskId first = dag.members_of(group).front();
      const Task& task = dag.tasks[first];
      const OpKind op = task.op == OpKind::receive ? OpKind::send : task.op;
      times[{op, dag.communicator_of(task).members.size(), dag.groups[group].bytes}].push_back(timeline.duration(first));
    }
    return times;
  }
};

TEST_F(WithCollectives, AStepsCollectivesLastAsLongAsTheyWereMeasuredTo) {
  const std::vector<std::string> tp{"parallelism.tp=8", "model.kv_heads=8"};
  const WithCollectives::Times modelled = times_of(lowered(scenario_of({}, tp)));
  for (const auto& [key, durations] : modelled) {
    const auto [op, members, bytes] = key;
    if (op != OpKind::all_reduce || members != 8) continue;
    // Twice the model, and between two sizes that are so; flows are of whole bytes.
    const Seconds time = 2 * durations.front();
    const auto exact = times_of(lowered(scenario_of({measured(op, 8, 1, bytes, time)}, tp)));
    for (const Seconds found : exact.at(key)) EXPECT_NEAR(found, time, 1e-5 * time);
    const auto between =
        times_of(lowered(scenario_of({measured(op, 8, 1, bytes / 2, time / 2), measured(op, 8, 1, 2 * bytes, 2 * time)}, tp)));
    for (const Seconds found : between.at(key)) EXPECT_NEAR(found, time, 1e-5 * time);
    // Of other machines, and of other members: nothing.
    const auto elsewhere = times_of(lowered(scenario_of({measured(op, 8, 2, bytes, time), measured(op, 4, 1, bytes, time)}, tp)));
    EXPECT_EQ(elsewhere.at(key), durations);
  }
  EXPECT_TRUE(std::ranges::any_of(modelled, [](const auto& entry) { return std::get<0>(entry.first) == OpKind::all_reduce; }));
}

TEST_F(WithCollectives, TransfersOfAPipelineAndGroupsOverNodesToo) {
  const std::vector<std::string> mesh{"parallelism.pp=2", "parallelism.tp=8", "model.kv_heads=8", "parallelism.dp=1"};
  const auto modelled = times_of(lowered(scenario_of({}, mesh)));
  std::size_t transfers = 0;
  for (const auto& [key, durations] : modelled) {
    const auto [op, members, bytes] = key;
    if (op != OpKind::send) continue;
    constexpr Seconds time = 1e-3;
    const auto inside = times_of(lowered(scenario_of({measured(op, 2, 1, bytes, time)}, mesh)));
    EXPECT_EQ(inside.at(key), durations);
    const auto across = times_of(lowered(scenario_of({measured(op, 2, 2, bytes, time)}, mesh)));
    EXPECT_NEAR(*std::ranges::min_element(across.at(key)), time, 1e-6 * time);
    ++transfers;
  }
  EXPECT_GT(transfers, 0U);
}

TEST_F(WithCollectives, ExchangesOfExpertsToo) {
  const std::vector<std::string> mesh{R"(model.moe={"experts":8,"top_k":2,"ffn":64})", "parallelism.dp=4", "parallelism.ep=4"};
  std::size_t exchanges = 0;
  for (const auto& [key, durations] : times_of(lowered(scenario_of({}, mesh)))) {
    const auto [op, members, bytes] = key;
    if (op != OpKind::all_to_all) continue;
    constexpr Seconds time = 1e-3;
    const auto measured_one = times_of(lowered(scenario_of({measured(op, 4, 1, bytes, time)}, mesh)));
    EXPECT_NEAR(*std::ranges::min_element(measured_one.at(key)), time, 1e-6 * time);
    ++exchanges;
  }
  EXPECT_GT(exchanges, 0U);
}

TEST_F(WithCollectives, FoldedIsUnfolded) {
  const std::vector<std::string> mesh{"parallelism.pp=2", "parallelism.tp=2", "parallelism.dp=4", "parallelism.zero=1"};
  const std::vector<MeasuredCollective> collectives{
      measured(OpKind::all_reduce, 2, 1, 1 << 12, 40e-6), measured(OpKind::all_reduce, 2, 1, 1 << 20, 90e-6),
      measured(OpKind::all_gather, 4, 1, 1 << 12, 50e-6), measured(OpKind::reduce_scatter, 4, 1, 1 << 12, 70e-6),
      measured(OpKind::send, 2, 1, 1 << 12, 30e-6),       measured(OpKind::send, 2, 2, 1 << 12, 60e-6)};
  const Scenario scenario = scenario_of(collectives, mesh), without = scenario_of({}, mesh);
  const Seconds unfolded = simulate(lowered(scenario_of(collectives, mesh))).timeline.makespan();
  EXPECT_NEAR(simulate(lower(scenario, make_world(scenario, true))).timeline.makespan(), unfolded, 1e-9 * unfolded);
  EXPECT_GT(unfolded, simulate(lowered(without)).timeline.makespan());
  const Dag dag = lowered(scenario);
  EXPECT_LE(lower_bound(dag), unfolded);
  EXPECT_GE(upper_bound(dag, simulate(dag).timeline), unfolded * (1 - 1e-9));
}

TEST_F(WithCollectives, PlayedInStepsTheyAreStretchedToo) {
  const std::vector<std::string> tp{"parallelism.tp=8", "model.kv_heads=8"};
  const Scenario plain = scenario_of({}, tp);
  const Dag model = lower(plain, make_world(plain, false, {.detail = Detail::hops}));
  Dag measured_twice = model;
  for (const auto& [key, durations] : times_of(model)) {
    const auto [op, members, bytes] = key;
    measured_twice.devices.front().collectives.push_back(
        measured(op, static_cast<std::int32_t>(members), 1, bytes, 2 * durations.front()));
  }
  const auto communication = [](const Dag& dag) {
    const Timeline timeline = simulate(dag, Collectives::steps).timeline;
    Seconds sum = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (is_communication(dag.tasks[id].op)) sum += timeline.duration(id);
    return sum;
  };
  EXPECT_NEAR(communication(measured_twice), 2 * communication(model), 0.01 * communication(model));
}

TEST_F(WithCollectives, SayNothingOfLinksWithFaults) {
  std::vector<std::string> tp{"parallelism.tp=8", "model.kv_heads=8"};
  const std::vector<MeasuredCollective> slow{measured(OpKind::all_reduce, 8, 1, 1 << 12, 1e-2)};
  EXPECT_FALSE(scenario_of(slow, tp).cluster.gpu.collectives.empty());
  tp.emplace_back("faults.slow_link={gpu: 3, factor: 0.5}");
  EXPECT_TRUE(scenario_of(slow, tp).cluster.gpu.collectives.empty());
}

}  // namespace
}  // namespace tandem::studies::profile_test
