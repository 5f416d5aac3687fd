// What a measured collective says of others: the line between two sizes, the links' share beyond them, and nothing of other
// members.
#include "sim/measured_collectives.h"

#include <gtest/gtest.h>

#include "sim/collective_cost.h"
#include "sim/simulate.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::measured_collectives_test {
namespace {

MeasuredCollective measured(OpKind op, std::int32_t members, Bytes bytes, Seconds median, std::int32_t machines = 1) {
  return {.op = op, .members = members, .machines = machines, .bytes = bytes, .timing = {median, median / 2, median * 2, 9}};
}

const std::vector<MeasuredCollective> some{
    measured(OpKind::all_reduce, 8, 16'000, 30e-6),  measured(OpKind::all_reduce, 8, 4'000, 20e-6),
    measured(OpKind::all_reduce, 8, 64'000, 100e-6), measured(OpKind::all_reduce, 8, 16'000, 90e-6, 2),
    measured(OpKind::all_reduce, 4, 16'000, 11e-6),  measured(OpKind::send, 2, 1'000, 5e-6),
};

std::optional<Seconds> time(OpKind op, Bytes bytes, std::size_t members, std::size_t machines = 1) {
  return measured_time(some, op, bytes, members, machines, [](Bytes of) { return 1e-6 + static_cast<double>(of) * 1e-9; });
}

TEST(MeasuredTime, OfAMeasuredSizeIsItsMedian) {
  EXPECT_EQ(time(OpKind::all_reduce, 4'000, 8), 20e-6);
  EXPECT_EQ(time(OpKind::all_reduce, 64'000, 8), 100e-6);
  EXPECT_EQ(time(OpKind::all_reduce, 16'000, 4), 11e-6);
}

TEST(MeasuredTime, BetweenSizesLiesOnTheirLine) {
  EXPECT_DOUBLE_EQ(*time(OpKind::all_reduce, 10'000, 8), 25e-6);
  EXPECT_DOUBLE_EQ(*time(OpKind::all_reduce, 40'000, 8), 65e-6);
}

TEST(MeasuredTime, BeyondThemGoesAsTheLinksDo) {
  EXPECT_DOUBLE_EQ(*time(OpKind::all_reduce, 1'000, 8), 20e-6 * 2 / 5);
  EXPECT_DOUBLE_EQ(*time(OpKind::all_reduce, 0, 8), 20e-6 * 1 / 5);
  EXPECT_DOUBLE_EQ(*time(OpKind::all_reduce, 128'999, 8), 100e-6 * 129.999 / 65);
}

TEST(MeasuredTime, IsOfAsManyMembersOnAsManyMachines) {
  EXPECT_EQ(time(OpKind::all_reduce, 16'000, 8, 2), 90e-6);
  EXPECT_EQ(time(OpKind::all_reduce, 16'000, 8, 4), std::nullopt);
  EXPECT_EQ(time(OpKind::all_reduce, 16'000, 16), std::nullopt);
  EXPECT_EQ(time(OpKind::all_gather, 16'000, 8), std::nullopt);
  EXPECT_EQ(time(OpKind::receive, 1'000, 2), 5e-6);  // the other side of a send
}

/// A ring over two members with a channel of 100 GB/s.
Layout ring(Algorithm algorithm = Algorithm::ring) {
  return {
      .nodes = 1, .intra_latency = 3.4e-6, .paths = {{.algorithm = algorithm, .crossings = {{.link = 0}}, .bandwidth = 100e9}}};
}

TEST(MeasuredCollectiveCost, IsStretchedToWhatWasMeasured) {
  constexpr Bytes bytes = 100'000'000;
  const CollectiveCost model = collective_cost(OpKind::all_reduce, bytes, 2, ring());
  Device device;
  device.collectives = {measured(OpKind::all_reduce, 2, bytes, 3e-3)};
  const CollectiveCost cost = collective_cost(OpKind::all_reduce, bytes, 2, ring(), device);
  const Seconds alone = model.latency + static_cast<double>(model.bytes_per_channel) / 100e9;
  EXPECT_DOUBLE_EQ(cost.stretch, 3e-3 / alone);
  EXPECT_DOUBLE_EQ(cost.latency, model.latency * cost.stretch);
  EXPECT_NEAR(cost.latency + static_cast<double>(cost.bytes_per_channel) / 100e9, 3e-3, 1e-11);
  // What was not measured stays as it was.
  const CollectiveCost gathered = collective_cost(OpKind::all_gather, bytes, 2, ring(), device);
  EXPECT_EQ(gathered.stretch, 1);
  EXPECT_EQ(gathered.latency, collective_cost(OpKind::all_gather, bytes, 2, ring()).latency);
}

TEST(MeasuredCollectiveCost, DeepEpIsNotNcclsAllToAll) {
  Device device;
  device.collectives = {measured(OpKind::all_to_all, 2, 1'000'000, 3e-3)};
  EXPECT_EQ(collective_cost(OpKind::all_to_all, 1'000'000, 2, ring(Algorithm::deepep), device).stretch, 1);
  EXPECT_NE(collective_cost(OpKind::all_to_all, 1'000'000, 2, ring(Algorithm::direct), device).stretch, 1);
}

/// Two all-reduces among two ranks each over one link.
Dag two_at_a_time(const std::vector<MeasuredCollective>& collectives, bool alone, Bytes bytes) {
  SmallDag small;
  const LinkId link = small.link(100e9);
  Layout layout = ring();
  layout.paths.front().crossings = {{.link = link}};
  for (int pair = 0; pair < (alone ? 1 : 2); ++pair) {
    const CommunicatorId communicator = small.communicator(1, layout);
    small.all_reduce(small.rank(), communicator, bytes);
  }
  Dag dag = small.finish();
  for (Communicator& communicator : dag.communicators) communicator.members = {0, 1};
  dag.devices.front().collectives = collectives;
  return dag;
}

TEST(MeasuredCollectiveCost, SharesLinksWithOthers) {
  constexpr Bytes bytes = 100'000'000;
  const std::vector<MeasuredCollective> collectives{measured(OpKind::all_reduce, 2, bytes, 3e-3)};
  EXPECT_NEAR(simulate(two_at_a_time(collectives, true, bytes)).timeline.makespan(), 3e-3, 1e-9);
  const CollectiveCost model = collective_cost(OpKind::all_reduce, bytes, 2, ring());
  const Seconds alone = model.latency + static_cast<double>(model.bytes_per_channel) / 100e9;
  EXPECT_NEAR(simulate(two_at_a_time({}, true, bytes)).timeline.makespan(), alone, 1e-9);
  // Twice the bytes over the link, once the latency.
  const Seconds latency = 3e-3 * model.latency / alone;
  EXPECT_NEAR(simulate(two_at_a_time(collectives, false, bytes)).timeline.makespan(), 2 * 3e-3 - latency, 1e-8);
}

}  // namespace
}  // namespace tandem::sim::measured_collectives_test
