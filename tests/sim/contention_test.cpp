#include "sim/contention.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "sim/bounds.h"
#include "sim/simulate.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::contention_test {
namespace {

constexpr Seconds us = 1e-6;
constexpr double GBps = 1e9;
constexpr double rounding = 1e-12;

Device hundred_multiprocessors() {
  Device device;
  device.name = "hundred";
  device.multiprocessors = 100;
  device.memory_bandwidth = 1000 * GBps;
  device.efficiency.memory = 0.9;
  return device;
}

TEST(Slowdown, OfArithmeticIsByTheMultiprocessorsThatAreLeft) {
  const KernelTime kernel{.total = 10, .launch = 1, .computing = 9, .moving = 3};
  EXPECT_DOUBLE_EQ(slowdown(kernel, hundred_multiprocessors(), {.multiprocessors = 20}), (1 + 9 / 0.8) / 10);
  EXPECT_DOUBLE_EQ(slowdown(kernel, hundred_multiprocessors(), {.memory = 300 * GBps}), 1);  // 3 become 4.5, which hide
}

TEST(Slowdown, OfMemoryIsByTheBandwidthThatIsLeft) {
  const KernelTime kernel{.total = 10, .launch = 1, .computing = 3, .moving = 9};
  EXPECT_DOUBLE_EQ(slowdown(kernel, hundred_multiprocessors(), {.memory = 300 * GBps}), (1 + 9 * 1.5) / 10);
  EXPECT_DOUBLE_EQ(slowdown(kernel, hundred_multiprocessors(), {.multiprocessors = 20}), 1);
  EXPECT_DOUBLE_EQ(slowdown(kernel, hundred_multiprocessors(), {.multiprocessors = 75}),
                   (1 + 3 * 4) / 10.0);  // arithmetic after all
}

TEST(Slowdown, LeavesSomethingToKernels) {
  const KernelTime kernel{.total = 1, .computing = 1, .moving = 1};
  EXPECT_DOUBLE_EQ(slowdown(kernel, hundred_multiprocessors(), {.multiprocessors = 1000}), 100);
  EXPECT_DOUBLE_EQ(slowdown(kernel, hundred_multiprocessors(), {.memory = 5000 * GBps}), 2);
}

TEST(Slowdown, NeverFallsAsMoreIsTaken) {
  for (const KernelTime& kernel : {KernelTime{1, 0.1, 0.9, 0.5}, KernelTime{1, 0.1, 0.5, 0.9}, KernelTime{1, 0.5, 0.5, 0.5}}) {
    double before = 1;
    for (int i = 0; i <= 120; ++i) {
      const double now = slowdown(kernel, hundred_multiprocessors(), {.multiprocessors = i, .memory = i * 10 * GBps});
      EXPECT_GE(now, before);
      before = now;
    }
  }
}

/// A product of 1 ms on one of 132 multiprocessors' devices of 1 TFLOP/s, and an all-reduce over a link of 10 GB/s beside it.
class OneBesideOne : public testing::Test {
 protected:
  SmallDag small{Architecture::hopper};
  LinkId link = small.link(10 * GBps);
  RankIndex rank = small.rank();
  CommunicatorId pair = small.communicator(2, {.intra_latency = 3.4 * us, .paths = {{.crossings = {{link, 1}}}}});

  static void complete(Dag& dag) {
    Device& device = dag.devices.front();
    device.multiprocessors = 132;
    device.memory_bandwidth = 3000 * GBps;
    device.peak[static_cast<std::size_t>(DType::f32)] = 1e12;
    device.efficiency.gemm[static_cast<std::size_t>(DType::f32)].rate = 1;
  }
  static Occupation occupation_of(const Dag& dag, TaskId task) { return CollectiveCosts(dag).of(dag.tasks[task]).occupation; }
};

TEST_F(OneBesideOne, AKernelEndsLaterByWhatTheCollectiveTookFromIt) {
  const TaskId product = small.product(rank, 1000);
  const TaskId reduce = small.all_reduce(rank, pair, 4'000'000);
  Dag dag = small.finish();
  complete(dag);
  ASSERT_EQ(occupation_of(dag, reduce).multiprocessors, 24);
  const Timeline timeline = simulate(dag).timeline;
  const Seconds beside = timeline.end[reduce];
  ASSERT_LT(beside, 1000 * us);
  EXPECT_NEAR(timeline.end[product], beside + (1000 * us - beside * 108 / 132), rounding * 1000 * us);
}

TEST_F(OneBesideOne, AKernelThatStartsLaterIsSlowOnlyWhileTheCollectiveLasts) {
  const TaskId first = small.kernel(rank, 100'000, Stream::cp);
  const TaskId product = small.product(rank, 1000);
  small.depend(first, product);
  const TaskId reduce = small.all_reduce(rank, pair, 4'000'000);
  Dag dag = small.finish();
  complete(dag);
  const Timeline timeline = simulate(dag).timeline;
  const Seconds start = timeline.start[product], beside = timeline.end[reduce] - start;
  ASSERT_GT(start, 0);
  ASSERT_GT(beside, 0);
  EXPECT_NEAR(timeline.duration(product), beside + (1000 * us - beside * 108 / 132), rounding * 1000 * us);
}

TEST_F(OneBesideOne, AKernelInsideTheCollectiveIsSlowAllTheTime) {
  const TaskId product = small.product(rank, 10);
  const TaskId reduce = small.all_reduce(rank, pair, 4'000'000);
  Dag dag = small.finish();
  complete(dag);
  const Timeline timeline = simulate(dag).timeline;
  ASSERT_LT(timeline.end[product], timeline.end[reduce]);
  EXPECT_NEAR(timeline.duration(product), 10 * us * 132 / 108, rounding * us);
}

TEST_F(OneBesideOne, WhatWaitsForAnotherIsNotSlowed) {
  TaskId before = small.product(rank, 100);
  std::vector<TaskId> products{before};
  for (int i = 0; i < 3; ++i) {
    const TaskId reduce = small.all_reduce(rank, pair, 1'000'000);
    small.depend(before, reduce);
    before = small.product(rank, 100);
    small.depend(reduce, before);
    products.push_back(before);
  }
  Dag dag = small.finish();
  complete(dag);
  const Timeline timeline = simulate(dag).timeline;
  for (const TaskId product : products) EXPECT_DOUBLE_EQ(timeline.duration(product), 100 * us);
}

TEST_F(OneBesideOne, AProductLeavesItsMarginAndNoMore) {
  const TaskId product = small.product(rank, 1000);
  const TaskId reduce = small.all_reduce(rank, pair, 4'000'000);
  Dag dag = small.finish();
  complete(dag);
  const auto time_with_margin = [&](std::int32_t margin) {
    dag.software.gemm_sm_margin = margin;
    return simulate(dag).timeline.duration(product);
  };
  ASSERT_EQ(occupation_of(dag, reduce).multiprocessors, 24);
  EXPECT_NEAR(time_with_margin(24), 1000 * us * 132 / 108, rounding * 1000 * us);  // as if the collective never ended
  EXPECT_NEAR(time_with_margin(66), 2000 * us, rounding * 1000 * us);
  EXPECT_LT(time_with_margin(0), time_with_margin(12));  // which fills up where the collective has ended
  EXPECT_LT(time_with_margin(12), time_with_margin(24));
}

TEST_F(OneBesideOne, OtherRanksAreNotSlowed) {
  const TaskId other = small.product(small.rank(), 1000);
  small.all_reduce(rank, pair, 4'000'000);
  Dag dag = small.finish();
  complete(dag);
  EXPECT_DOUBLE_EQ(simulate(dag).timeline.duration(other), 1000 * us);
}

TEST_F(OneBesideOne, AnUnknownNumberOfMultiprocessorsKnowsNoContention) {
  const TaskId product = small.product(rank, 1000);
  small.all_reduce(rank, pair, 4'000'000);
  Dag dag = small.finish();
  complete(dag);
  dag.devices.front().multiprocessors = 0;
  EXPECT_DOUBLE_EQ(simulate(dag).timeline.duration(product), 1000 * us);
}

TEST_F(OneBesideOne, MessageByMessageASlowedKernelIsSlowForAsLong) {
  const TaskId product = small.product(rank, 1000);
  const TaskId reduce = small.all_reduce(rank, pair, 4'000'000);
  Dag dag = small.finish();
  complete(dag);
  const Timeline timeline = simulate(dag, Collectives::steps).timeline;
  const Seconds beside = timeline.end[reduce];
  EXPECT_NEAR(timeline.end[product], beside + (1000 * us - beside * 108 / 132), rounding * 1000 * us);
}

/// Kernels and collectives in any order, on devices of NVIDIA's that have little memory bandwidth.
Dag random_contended_dag(std::uint32_t seed) {
  Dag dag = random_dag(seed);
  for (Device& device : dag.devices) {
    device.architecture = Architecture::ampere;
    device.multiprocessors = 108;
  }
  return dag;
}

/// What a kernel did while it ran, in seconds of the device alone: its rate in each piece between two changes of what runs
/// beside.
Seconds work_of(TaskId kernel, const Dag& dag, const Timeline& timeline, const KernelTimes& times, CollectiveCosts& costs) {
  std::vector<TaskId> beside;
  std::set<Seconds> dates{timeline.start[kernel], timeline.end[kernel]};
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank != dag.tasks[kernel].rank || !is_communication(dag.tasks[id].op)) continue;
    beside.push_back(id);
    for (const Seconds date : {timeline.start[id], timeline.end[id]})
      if (date > timeline.start[kernel] && date < timeline.end[kernel]) dates.insert(date);
  }
  Seconds work = 0;
  for (auto to = std::next(dates.begin()); to != dates.end(); ++to) {
    const Seconds from = *std::prev(to);
    Occupation taken;
    for (const TaskId id : beside) {
      if (timeline.start[id] > from || timeline.end[id] < *to) continue;
      const Occupation& occupation = costs.of(dag.tasks[id]).occupation;
      taken.multiprocessors += occupation.multiprocessors;
      taken.memory += occupation.memory;
    }
    work += (*to - from) / slowdown(times.parts_of(kernel), dag.device_of(dag.tasks[kernel]), taken);
  }
  return work;
}

TEST(Contention, LosesNoWork) {
  int slowed = 0;
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    const Dag dag = random_contended_dag(seed);
    const Timeline timeline = simulate(dag).timeline;
    const KernelTimes times(dag);
    CollectiveCosts costs(dag);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (is_communication(dag.tasks[id].op)) continue;
      EXPECT_NEAR(work_of(id, dag, timeline, times, costs), times.of(id), 1e-9 * times.of(id))
          << "seed " << seed << " task " << id;
      if (timeline.duration(id) > times.of(id) * (1 + 1e-9)) ++slowed;
    }
  }
  EXPECT_GT(slowed, 100);
}

TEST(Contention, SlowsStepsAndStaysBetweenTheBounds) {
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    const Dag dag = random_contended_dag(seed);
    const Timeline timeline = simulate(dag).timeline;
    const KernelTimes alone(dag);
    EXPECT_LE(lower_bound(dag), timeline.makespan() * (1 + rounding)) << "seed " << seed;
    EXPECT_LE(timeline.makespan(), upper_bound(dag, timeline, &alone) * (1 + rounding)) << "seed " << seed;
    EXPECT_LE(upper_bound(dag, timeline, &alone), upper_bound(dag, timeline) * (1 + rounding)) << "seed " << seed;
  }
}

TEST(Contention, EqualDagsGiveEqualTimelines) {
  const Dag dag = random_contended_dag(3);
  EXPECT_EQ(simulate(dag).timeline.end, simulate(dag).timeline.end);
}

}  // namespace
}  // namespace tandem::sim::contention_test
