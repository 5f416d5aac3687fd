#include "sim/bounds.h"

#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"
#include "tests/sim/limited_flow.h"

namespace tandem::sim::bounds_test {
namespace {

constexpr Seconds ns = 1e-9;
constexpr double rounding = 1e-12;  // relative: the upper bound adds up durations that are differences of dates

TEST(Bounds, EncloseTheSimulatedStep) {
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    const Dag dag = random_dag(seed);
    const Timeline timeline = simulate(dag).timeline;
    EXPECT_LE(lower_bound(dag), timeline.makespan() * (1 + rounding)) << "seed " << seed;
    EXPECT_LE(timeline.makespan(), upper_bound(dag, timeline) * (1 + rounding)) << "seed " << seed;
  }
}

TEST(Bounds, OfOneStreamOfKernelsMeet) {
  SmallDag small;
  const RankIndex rank = small.rank();
  for (const std::int64_t duration : {300, 200}) small.kernel(rank, duration);
  const Dag dag = small.finish();
  const Timeline timeline = simulate(dag).timeline;
  EXPECT_DOUBLE_EQ(lower_bound(dag), 500 * ns);
  EXPECT_DOUBLE_EQ(upper_bound(dag, timeline), 500 * ns);
}

TEST(Bounds, UpperWaitsForOtherRanks) {
  SmallDag small;
  const TaskId first = small.kernel(small.rank(), 300);
  const TaskId second = small.kernel(small.rank(), 200);
  small.depend(first, second);
  const Dag dag = small.finish();
  EXPECT_DOUBLE_EQ(upper_bound(dag, {.start = {0, 0}, .end = {300 * ns, 200 * ns}}), 500 * ns);
}

TEST(Bounds, LowerIsTheBusiestRankOrLink) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  small.flow(500, {{link, 2}});
  small.flow(300, {{link, 1}});
  for (const std::int64_t duration : {700, 900}) small.kernel(small.rank(), duration);
  Dag dag = small.finish();
  EXPECT_DOUBLE_EQ(lower_bound(dag), (500 * 2 + 300) * ns);  // at 1 byte a nanosecond
  dag.links[link].capacity = 2e9;
  EXPECT_DOUBLE_EQ(lower_bound(dag), 900 * ns);
}

TEST(Bounds, LowerKnowsNoEfficiencyNorLatency) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  small.flow(500, {{link, 1}}, 1.0);
  small.kernel(small.rank(), 100);
  Dag dag = small.finish();
  dag.devices[0].efficiency.memory = 0.1;
  dag.devices[0].efficiency.launch = 1;
  EXPECT_DOUBLE_EQ(lower_bound(dag), 500 * ns);
}

TEST(Bounds, LowerKnowsTheRateOfAProtocol) {
  SmallDag small(Architecture::hopper);
  limited_flow(small, 500, {{small.link(1e9), 1}}, 0.1e9);
  EXPECT_NEAR(lower_bound(small.finish()), 5000 * ns, 1e-9 * ns);
}

TEST(Bounds, UpperLetsNothingOverlapOnARank) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  const CommunicatorId pair = small.communicator(2, {.paths = {{.crossings = {{link, 1}}}}});
  const RankIndex rank = small.rank();
  small.kernel(rank, 500);
  const TaskId reduce = small.all_reduce(rank, pair, 1000);
  small.kernel(small.rank(), 800);  // another rank's time overlaps as before
  const Dag dag = small.finish();
  const Timeline timeline = simulate(dag).timeline;
  EXPECT_DOUBLE_EQ(timeline.makespan(), timeline.duration(reduce));
  EXPECT_DOUBLE_EQ(upper_bound(dag, timeline), 500 * ns + timeline.duration(reduce));
}

/// As in a folded ring, or where a pipeline's middle stages mirror each other.
TEST(Bounds, UpperHasBothEndsOfAPairOneAfterTheOther) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  const CommunicatorId pair = small.communicator(2, {.paths = {{.crossings = {{link, 1}}}}});
  const RankIndex rank = small.rank();
  const TaskId send = small.send(rank, pair, 1000);
  small.receive(rank, pair, 1000);
  small.kernel(rank, 500);
  const Dag dag = small.finish();
  const Timeline timeline = simulate(dag).timeline;
  EXPECT_DOUBLE_EQ(upper_bound(dag, timeline), 500 * ns + 2 * timeline.duration(send));
}

}  // namespace
}  // namespace tandem::sim::bounds_test
