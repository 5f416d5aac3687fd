#include "sim/link_use.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "sim/simulate.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"
#include "topology/layouts.h"

namespace tandem::sim::link_use_test {
namespace {

constexpr double rounding = 1e-9;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

LinkUse simulated_use(const Dag& dag, std::size_t bins) { return link_use(dag, simulate(dag).timeline, bins); }

/// On `nodes` nodes of two GPUs with a NIC each, all in one ring.
TEST(LinkUse, NicsCarryTheBusBytesOfARing) {
  constexpr std::uint32_t nodes = 4, per_node = 2, n = nodes * per_node;
  constexpr Bytes vector = 840'000'000;  // divides by n and by its channels
  ClusterSpec spec;
  spec.gpus = n;
  spec.gpus_per_node = spec.nics_per_node = per_node;
  spec.nvlink_GBps = 400;
  spec.nic_gbps = 400;
  spec.fabric.kind = FabricSpec::Kind::one_switch;
  const Cluster cluster(spec);
  std::vector<std::uint32_t> gpus(n);
  std::iota(gpus.begin(), gpus.end(), 0U);
  SmallDag small;
  small.links(cluster.links());
  small.all_reduce(small.rank(), small.communicator(n, lay_group(cluster, gpus)), vector);
  const Dag dag = small.finish();
  const LinkUse use = simulated_use(dag, 10);

  // Each of n members sends 2 (n-1)/n of the vector to the next; of n hops on each of two channels, `nodes` are between nodes.
  double over_nics = 0, over_nvlink = 0;
  for (LinkId id = 0; id < dag.links.size(); ++id)
    (dag.links[id].tier == Tier::nic ? over_nics : over_nvlink) += use.links[id].bytes;
  const double bus_bytes = 2.0 * (n - 1) / n * vector;
  EXPECT_DOUBLE_EQ(over_nics, 2 * nodes * bus_bytes);  // out of one and into the other
  EXPECT_DOUBLE_EQ(over_nvlink, 2 * (n - nodes) * bus_bytes);

  ASSERT_EQ(use.tiers.size(), 2U);
  EXPECT_EQ(use.tiers[0].tier, Tier::nvlink);
  EXPECT_EQ(use.tiers[1].tier, Tier::nic);
  EXPECT_EQ(use.tiers[1].links, 2 * n);
  EXPECT_EQ(use.tiers[1].capacity, cluster.nic_capacity());
  EXPECT_NEAR(mean(use.tiers[1].utilisation) * cluster.nic_capacity() * use.edges.back() * 2 * n, over_nics,
              rounding * over_nics);
}

TEST(LinkUse, NothingMovesDuringTheLatency) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  small.flow(1'000'000, {{link, 2}}, 2e-3);
  const LinkUse use = simulated_use(small.finish(), 4);  // 2 ms of latency, then 2 MB at 1 GB/s
  ASSERT_EQ(use.links.size(), 1U);
  const std::vector<double>& by_bin = use.links[0].utilisation;
  EXPECT_NEAR(by_bin[0], 0, rounding);
  EXPECT_NEAR(by_bin[1], 0, rounding);
  EXPECT_NEAR(by_bin[2], 1, rounding);
  EXPECT_NEAR(by_bin[3], 1, rounding);
  EXPECT_EQ(use.links[0].bytes, 2e6);
}

TEST(LinkUse, OfCollectivesThatTookTurnsNoneIsAboveTheCapacity) {
  // The long flow has the link to itself but for 1 ms, in which the short one takes half: spread evenly, they would add up to
  // 3.5/4 + 0.5 there.
  SmallDag small;
  const LinkId link = small.link(1e9);
  small.flow(3'500'000, {{link, 1}});
  small.flow(500'000, {{link, 1}}, 0, 1'000'000);
  const LinkUse use = simulated_use(small.finish(), 8);
  EXPECT_NEAR(use.edges.back(), 4e-3, 1e-12);
  for (const double utilisation : use.links[0].utilisation) EXPECT_NEAR(utilisation, 1, rounding);
}

TEST(LinkUse, AddsUp) {
  double highest = 0;
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    const Dag dag = random_dag(seed);
    const LinkUse use = simulated_use(dag, 100);
    ASSERT_EQ(use.edges.size(), 101U);
    for (LinkId id = 0; id < dag.links.size(); ++id) {
      const LinkUse::OfLink& link = use.links[id];
      EXPECT_NEAR(mean(link.utilisation) * dag.links[id].capacity * use.edges.back(), link.bytes, rounding * link.bytes);
      double users = 0;
      for (const LinkUse::User& user : link.users) users += user.bytes;
      EXPECT_DOUBLE_EQ(users, link.bytes) << "seed " << seed;
      for (const double utilisation : link.utilisation) {
        EXPECT_GE(utilisation, 0) << "seed " << seed;
        EXPECT_LE(utilisation, 1 + rounding) << "seed " << seed;
        highest = std::max(highest, utilisation);
      }
    }
  }
  EXPECT_GT(highest, 0.5);
}

TEST(LinkUse, UsersAreFamiliesOfCommunicators) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  for (const Bytes bytes : {100, 300}) small.flow(bytes, {{link, 1}});
  const LinkUse use = simulated_use(small.finish(), 3);
  ASSERT_EQ(use.links[0].users.size(), 1U);  // two pairs of one name
  EXPECT_EQ(use.links[0].users[0].communicator, "members");
  EXPECT_EQ(use.links[0].users[0].axis, Axis::dp);
  EXPECT_EQ(use.links[0].users[0].bytes, 400);
}

TEST(LinkUse, TiersWeighLinksByWhatTheyStandFor) {
  SmallDag small;
  const LinkId busy = small.link(1e9), idle = small.link(2e9);
  small.flow(1'000'000, {{busy, 1}});
  Dag dag = small.finish();
  dag.links[busy].count = 3;
  dag.links[idle].count = 5;
  const LinkUse use = simulated_use(dag, 1);
  ASSERT_EQ(use.tiers.size(), 1U);
  EXPECT_EQ(use.tiers[0].links, 8);
  EXPECT_EQ(use.tiers[0].capacity, 1e9);
  EXPECT_NEAR(use.tiers[0].utilisation[0], 3.0 / 8, rounding);
}

TEST(LinkUse, OfACollectiveFasterThanItsLatencyIsSpreadOverAllOfIt) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  small.flow(1'000, {{link, 1}}, 1.0);
  const LinkUse use = link_use(small.finish(), {.start = {0}, .end = {1e-3}}, 2);  // as an executed step can be
  EXPECT_DOUBLE_EQ(use.links[0].utilisation[0], 1e-3);
  EXPECT_DOUBLE_EQ(use.links[0].utilisation[1], 1e-3);
}

TEST(LinkUse, WithoutCommunication) {
  SmallDag small;
  small.kernel(small.rank(), 1000);
  const LinkUse use = simulated_use(small.finish(), 4);
  EXPECT_EQ(use.edges.size(), 5U);
  EXPECT_DOUBLE_EQ(use.edges.back(), 1e-6);
  EXPECT_TRUE(use.links.empty());
  EXPECT_TRUE(use.tiers.empty());
  EXPECT_EQ(simulated_use(SmallDag().finish(), 2).edges, (std::vector<Seconds>{0, 0, 0}));
}

}  // namespace
}  // namespace tandem::sim::link_use_test
