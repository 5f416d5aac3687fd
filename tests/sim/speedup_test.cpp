#include "sim/speedup.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "sim/collective_cost.h"
#include "sim/simulate.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"
#include "tests/sim/limited_flow.h"

namespace tandem::sim::speedup_test {
namespace {

constexpr Seconds ns = 1e-9, ms = 1e-3;
constexpr double factor = 1.25;  // divides without rounding
constexpr double rounding = 1e-9;

Seconds step_time(const Dag& dag, const Speedup& speedup = {}) {
  return simulate(dag, Collectives::fluid, speedup).timeline.makespan();
}

std::vector<Speedup> one_of_each(double times) {
  return {{OpKind::scale, times}, {Axis::tp, times}, {Axis::dp, times}, {Tier::nvlink, times}, {PipelineStage{0}, times}};
}

TEST(Speedup, ByOneChangesNothingToTheLastBit) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    const Dag dag = random_dag(seed);
    for (const Collectives collectives : {Collectives::fluid, Collectives::steps}) {
      const Timeline plain = simulate(dag, collectives).timeline;
      for (const Speedup& speedup : one_of_each(1)) {
        const Timeline same = simulate(dag, collectives, speedup).timeline;
        EXPECT_EQ(plain.start, same.start) << speedup.name();
        EXPECT_EQ(plain.end, same.end) << speedup.name();
      }
    }
  }
}

TEST(Speedup, OfAllKernelsOfOneRankIsThatOfTheStep) {
  SmallDag small;
  const RankIndex rank = small.rank();
  for (const std::int64_t duration : {300, 1, 7'000'001, 20}) small.kernel(rank, duration);
  Dag dag = small.finish();
  dag.devices[0].efficiency.launch = 1e-6;
  for (const double times : {1.1, 1.25, 0.5}) {
    EXPECT_DOUBLE_EQ(step_time(dag, {OpKind::fill, times}), step_time(dag) / times);
    EXPECT_DOUBLE_EQ(step_time(dag, {PipelineStage{0}, times}), step_time(dag) / times);
  }
}

TEST(Speedup, OfOneKindLeavesTheOthers) {
  DagBuilder builder;
  Device device;
  device.memory_bandwidth = 1e9;
  device.efficiency.memory = 1;
  builder.dag().devices.push_back(device);
  const RankIndex rank = builder.add_rank({});
  const auto buffer = [&] { return std::array{builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1000))}; };
  const auto written = buffer();
  builder.kernel(OpKind::fill, ScaleAttributes{}, {.name = "written, 4 us"}, {}, written);
  builder.kernel(OpKind::scale, ScaleAttributes{}, {.name = "read and written, 8 us"}, written, buffer());
  const Dag dag = builder.finish();
  EXPECT_NEAR(step_time(dag), 12'000 * ns, rounding * ns);
  EXPECT_NEAR(step_time(dag, {OpKind::fill, 2}), 10'000 * ns, rounding * ns);
  EXPECT_NEAR(step_time(dag, {OpKind::scale, 2}), 8'000 * ns, rounding * ns);
  EXPECT_EQ(step_time(dag, {OpKind::cast, 2}), step_time(dag));
}

TEST(Speedup, OfAStageLeavesTheOthers) {
  SmallDag small;
  const TaskId first = small.kernel(small.rank(), 1000), second = small.kernel(small.rank(), 3000);
  small.depend(first, second);
  Dag dag = small.finish();
  dag.ranks[1].pp = 1;
  EXPECT_NEAR(step_time(dag, {PipelineStage{0}, 2}), 3'500 * ns, rounding * ns);
  EXPECT_NEAR(step_time(dag, {PipelineStage{1}, 2}), 2'500 * ns, rounding * ns);
  EXPECT_EQ(step_time(dag, {PipelineStage{2}, 2}), step_time(dag));
}

/// 2 ms of latency, then 5 MB at 1 GB/s, on the dp axis.
Dag one_flow() {
  SmallDag small;
  const LinkId link = small.link(1e9);
  small.flow(5'000'000, {{link, 1}}, 2 * ms);
  return small.finish();
}

TEST(Speedup, OfAnAxisIsThatOfItsLatencyAndItsBytes) {
  EXPECT_NEAR(step_time(one_flow()), 7 * ms, rounding * ms);
  EXPECT_NEAR(step_time(one_flow(), {Axis::dp, factor}), 7 * ms / factor, rounding * ms);
  EXPECT_NEAR(simulate(one_flow(), Collectives::steps, {Axis::dp, factor}).timeline.makespan(), 7 * ms / factor, rounding * ms);
  EXPECT_EQ(step_time(one_flow(), {Axis::tp, factor}), step_time(one_flow()));
}

TEST(Speedup, OfATierLeavesTheLatency) {
  EXPECT_NEAR(step_time(one_flow(), {Tier::nvlink, factor}), 2 * ms + 5 * ms / factor, rounding * ms);
  EXPECT_EQ(step_time(one_flow(), {Tier::spine, factor}), step_time(one_flow()));
}

TEST(Speedup, OfATierIsHeldUpByTheNextNarrowestLink) {
  SmallDag small;
  const LinkId nvlink = small.link(1e9), nic = small.link(1.1e9);
  small.flow(11'000'000, {{nvlink, 1}, {nic, 1}});
  Dag dag = small.finish();
  dag.links[nic].tier = Tier::nic;
  EXPECT_NEAR(step_time(dag), 11 * ms, rounding * ms);
  EXPECT_NEAR(step_time(dag, {Tier::nvlink, factor}), 10 * ms, rounding * ms);
  EXPECT_NEAR(step_time(dag, {Tier::nic, factor}), 11 * ms, rounding * ms);
}

TEST(Speedup, OfATierWidensAProtocolsShareOfItAndNotNcclsOwnLimits) {
  // NVLS is held to a share of what the switches' links carry, LL of two ranks to so many bytes per second whatever these do.
  SmallDag small(Architecture::hopper);
  const auto nvls = limited_flow(small, 1'000'000'000, {{small.link(1e9), 1}}, 0.5e9);
  ASSERT_TRUE(nvls.cost.limit_is_share);
  const Dag dag = small.finish();
  const Seconds moving = static_cast<double>(nvls.cost.bytes_per_channel) / 0.5e9;
  EXPECT_NEAR(step_time(dag), nvls.cost.latency + moving, rounding);
  EXPECT_NEAR(step_time(dag, {Tier::nvlink, factor}), nvls.cost.latency + moving / factor, rounding);

  SmallDag other(Architecture::hopper);
  const LinkId wide = other.link(400e9);
  const Paths ring{.crossings = {{wide, 1}}, .bandwidth = 400e9, .in_node = 400e9, .slowest = 400e9};
  const CommunicatorId both = other.communicator(2, {.intra_latency = 3.4e-6, .paths = {ring}});
  other.all_reduce(other.rank(), both, 8'192);
  const Dag small_message = other.finish();
  CollectiveCosts costs(small_message);
  ASSERT_EQ(costs.of(small_message.tasks[0]).protocol, Protocol::ll);
  ASSERT_GT(costs.of(small_message.tasks[0]).rate_limit, 0);
  EXPECT_FALSE(costs.of(small_message.tasks[0]).limit_is_share);
  EXPECT_EQ(step_time(small_message, {Tier::nvlink, factor}), step_time(small_message));
}

TEST(Speedup, HasAName) {
  EXPECT_EQ(Speedup({OpKind::gemm, 2}).name(), "gemm");
  EXPECT_EQ(Speedup({Axis::tp, 2}).name(), "tp");
  EXPECT_EQ(Speedup({Tier::nic, 2}).name(), "nic");
  EXPECT_EQ(Speedup({PipelineStage{3}, 2}).name(), "stage 3");
  std::vector<std::string_view> groups;
  for (const Speedup& speedup : one_of_each(2)) groups.push_back(speedup.group());
  EXPECT_EQ(groups, (std::vector<std::string_view>{"kernel", "axis", "axis", "tier", "stage"}));
}

}  // namespace
}  // namespace tandem::sim::speedup_test
