// Collectives played message by message, against the one flow that else stands for them, on 8 to 64 GPUs.
//
// Messages that wait for no other (sends, all-to-all) share their links as the one flow does: both end together, exactly.
// Messages of a ring wait for each other, and the flow's latency is what they lose thereby (sim/ring_latency.h).

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/collective_in_steps.h"

namespace tandem::sim::steps_test {
namespace {

class Steps : public testing::TestWithParam<Setting> {
 protected:
  const Cluster cluster_{cluster_of(GetParam().gpus, GetParam().per_node, GetParam().rails, GetParam().oversubscribed)};

  void expect_close(OpKind op, Architecture architecture, std::initializer_list<Bytes> sizes, double tolerance) const {
    const Layout layout = lay_out(op, cluster_);
    for (const Bytes bytes : sizes) {
      Collective collective(cluster_, architecture);
      collective.add(op, op == OpKind::send ? 2 : static_cast<std::size_t>(cluster_.gpus()), bytes, layout);
      EXPECT_NEAR(times_of(collective.finish()).ratio(), 1, tolerance)
          << operation(op).name << " of " << bytes << " on " << name_of(architecture);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Clusters, Steps,
                         testing::Values(Setting{8, 8, true, 1}, Setting{8, 1, true, 1}, Setting{8, 1, false, 2},
                                         Setting{8, 2, true, 4}, Setting{16, 1, true, 1}, Setting{16, 2, true, 1},
                                         Setting{16, 4, false, 2}, Setting{16, 8, true, 1}, Setting{24, 3, true, 1},
                                         Setting{32, 8, true, 1}, Setting{32, 4, false, 4}, Setting{32, 16, true, 2},
                                         Setting{64, 8, true, 1}, Setting{64, 8, false, 4}));

TEST_P(Steps, MessagesThatStartTogetherEndWithTheOneFlow) {
  expect_close(OpKind::send, Architecture::unknown, {64 * KiB, MiB, 16 * MiB, GiB}, rounding);
  expect_close(OpKind::all_to_all, Architecture::unknown, {64 * KiB, 16 * MiB, GiB}, rounding);
}

TEST_P(Steps, RingsTakeTheFlowsTime) {
  for (const Architecture architecture : {Architecture::unknown, Architecture::ampere, Architecture::hopper}) {
    expect_close(OpKind::all_reduce, architecture, {64 * KiB, 4 * MiB, 64 * MiB, GiB}, three_percent);
    // With GPUs in nodes of their own NCCL would choose PAT, which is played as a ring of as long hops, and is none.
    if (GetParam().per_node == 1 && architecture != Architecture::unknown) continue;
    expect_close(OpKind::all_gather, architecture, {64 * KiB, MiB, 16 * MiB, 256 * MiB, 8 * GiB}, three_percent);
  }
  if (cluster_.gpus() <= 16)
    expect_close(OpKind::reduce_scatter, Architecture::unknown, {64 * KiB, MiB, 16 * MiB, 256 * MiB, GiB}, three_percent);
}

// Of hops between nodes that differ in speed the flow knows the mean and the slowest alone: the worst case seen.
class UnevenHops : public Steps {};
INSTANTIATE_TEST_SUITE_P(Clusters, UnevenHops, testing::Values(Setting{48, 16, false, 2}));
TEST_P(UnevenHops, AreAtMostSoFarOff) { expect_close(OpKind::all_reduce, Architecture::unknown, {64 * MiB}, 0.032); }

class Trees : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Clusters, Trees,
                         testing::Values(Setting{16, 8, true, 1}, Setting{8, 1, true, 1}, Setting{12, 2, true, 1},
                                         Setting{32, 4, false, 2}));

/// Hops from the farthest leaf to a root.
std::uint32_t height(const std::vector<Hop>& hops) {
  std::uint32_t highest = 0;
  for (const Hop& leaf : hops) {
    std::uint32_t steps = 0;
    for (const Hop* at = leaf.down ? nullptr : &leaf; at != nullptr; ++steps) {
      const auto up = std::ranges::find_if(
          hops, [&](const Hop& hop) { return !hop.down && hop.channel == at->channel && hop.from == at->to; });
      at = up == hops.end() ? nullptr : &*up;
    }
    highest = std::max(highest, steps);
  }
  return highest;
}

// A pipeline of d hops, none slower than the one flow: S slices take at most S + d - 1 times one slice, and the latencies.
TEST_P(Trees, FillTheirPipeline) {
  const auto [gpus, per_node, rails, oversubscribed] = GetParam();
  const Cluster cluster(cluster_of(gpus, per_node, rails, oversubscribed));
  Layout layout = lay_group(cluster, all(gpus), {.tree = true}, Detail::hops);
  layout.paths.erase(layout.paths.begin());
  ASSERT_EQ(layout.paths.front().algorithm, Algorithm::tree);
  const auto n = static_cast<std::size_t>(gpus);
  for (const Bytes bytes : {64 * KiB, 16 * MiB, 256 * MiB}) {
    Collective collective(cluster);
    collective.add(OpKind::all_reduce, n, bytes, layout);
    const Seconds played = simulate(collective.finish(), Collectives::steps).timeline.makespan();

    const CollectiveCost cost = collective_cost(OpKind::all_reduce, bytes, n, layout);
    const ChunkSteps steps = chunk_steps(OpKind::all_reduce, bytes, n, layout, cost);
    Seconds transfer = 0;
    for (const auto& [link, carried] : carried_in_steps(steps))
      transfer = std::max(transfer, static_cast<double>(carried) / cluster.link(link).capacity);
    const std::uint32_t hops = 2 * height(layout.paths.front().hops);
    const Seconds slowest = std::max(steps.intra_latency, steps.inter_latency);
    EXPECT_GT(played, transfer + steps.start) << bytes;
    EXPECT_LT(played, steps.start + transfer * (1 + (hops - 1.0) / steps.messages) + hops * slowest) << bytes;
    EXPECT_GE(steps.bytes / steps.messages, std::min<Bytes>(steps.bytes, 16 * KiB));
    EXPECT_LE(steps.bytes / steps.messages, 512 * KiB);
  }
}

// Two GPUs share each NIC, and each is in a ring of its own over all nodes: each gets half.
TEST(Contention, OfRingsOnTheSameNics) {
  ClusterSpec spec = cluster_of(16, 4);
  spec.nics_per_node = 2;
  const Cluster cluster(spec);
  for (const Bytes bytes : {MiB, 64 * MiB, GiB}) {
    Collective together(cluster);
    Collective alone(cluster);
    for (std::uint32_t place = 0; place < 4; ++place) {
      const std::vector<std::uint32_t> members{place, place + 4, place + 8, place + 12};
      const Layout layout = lay_group(cluster, members, {}, Detail::hops);
      together.add(OpKind::all_gather, 4, bytes, layout);
      if (place == 0) alone.add(OpKind::all_gather, 4, bytes, layout);
    }
    const Times both = times_of(together.finish()), one = times_of(alone.finish());
    EXPECT_NEAR(both.steps, both.fluid, three_percent * both.fluid) << bytes;
    EXPECT_NEAR(one.steps, one.fluid, three_percent * one.fluid) << bytes;
    EXPECT_GT(both.steps, 1.2 * one.steps) << bytes;
  }
}

// A long all-gather and a short one on the same ring: the short one ends first, and both models agree on either.
TEST(Contention, OfUnequalCollectives) {
  const Cluster cluster(cluster_of(8, 1));
  const Layout layout = lay_out(OpKind::all_gather, cluster);
  Collective collective(cluster);
  collective.add(OpKind::all_gather, 8, 512 * MiB, layout);
  collective.add(OpKind::all_gather, 8, 128 * MiB, layout);
  const Dag dag = collective.finish();
  const Timeline fluid = simulate(dag, Collectives::fluid).timeline;
  const Timeline steps = simulate(dag, Collectives::steps).timeline;
  EXPECT_LT(fluid.end[1], 0.5 * fluid.end[0]);
  for (const TaskId id : {0U, 1U}) EXPECT_NEAR(steps.end[id], fluid.end[id], three_percent * fluid.end[id]);
}

TEST(Nvls, IsOneFlow) {
  ClusterSpec spec = cluster_of(8, 8);
  spec.nvls = true;
  const Cluster cluster(spec);
  Layout layout = lay_group(cluster, all(8), {.nvls = true}, Detail::hops);
  layout.paths.erase(layout.paths.begin());
  ASSERT_EQ(layout.paths.front().algorithm, Algorithm::nvls);
  Collective collective(cluster);
  collective.add(OpKind::all_reduce, 8, 16 * MiB, layout);
  const Times times = times_of(collective.finish());
  EXPECT_NEAR(times.steps, times.fluid, 1e-11);
}

TEST(Determinism, EqualDagsGiveEqualTimelines) {
  const Cluster cluster(cluster_of(16, 4, false, 2));
  Collective collective(cluster);
  collective.add(OpKind::all_reduce, 16, 7'654'321, lay_out(OpKind::all_reduce, cluster));
  collective.add(OpKind::all_to_all, 16, 1'234'576, lay_out(OpKind::all_to_all, cluster));
  const Dag dag = collective.finish();
  EXPECT_EQ(simulate(dag, Collectives::steps).timeline.end, simulate(dag, Collectives::steps).timeline.end);
}

}  // namespace
}  // namespace tandem::sim::steps_test
