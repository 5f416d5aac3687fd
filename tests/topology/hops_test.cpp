// Message by message, a layout is what it is in sum.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "topology/layouts.h"

namespace tandem::topology::hops_test {
namespace {

std::vector<std::uint32_t> every(std::uint32_t gpus, std::uint32_t step = 1) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t gpu = 0; gpu < gpus; gpu += step) list.push_back(gpu);
  return list;
}

ClusterSpec nodes_of_four(std::int64_t gpus) {
  ClusterSpec spec;
  spec.gpus = gpus;
  spec.gpus_per_node = spec.nics_per_node = 4;
  spec.nvlink_GBps = 100;
  spec.nic_gbps = 400;
  spec.nvls = true;
  spec.fabric = {.rail_optimized = true, .leaf_ports = 2, .pod_leaves = 4};
  return spec;
}

ClusterSpec without_rails(std::int64_t gpus) {
  ClusterSpec spec = nodes_of_four(gpus);
  spec.fabric.rail_optimized = false;
  return spec;
}

ClusterSpec hashed(std::int64_t gpus) {
  ClusterSpec spec = nodes_of_four(gpus);
  spec.fabric.routing = FlowRouting::ecmp;
  spec.fabric.flows = 3;
  return spec;
}

ClusterSpec two_nics_each_and_a_dead_one(std::int64_t gpus) {
  ClusterSpec spec = nodes_of_four(gpus);
  spec.nics_per_node = 8;
  spec.link_faults = {{.where = LinkFault::Where::nic, .index = 3, .factor = 0}};
  return spec;
}

/// In hops, the collective's bytes are divided among the ring's or tree's channels; messages are whole.
double channels_of_hops(const Paths& paths, std::size_t members) {
  if (paths.algorithm == Algorithm::direct) return static_cast<double>(members - 1);
  std::set<std::uint32_t> channels;
  for (const Hop& hop : paths.hops) channels.insert(hop.channel);
  return static_cast<double>(channels.size());
}

void expect_equal_in_sum(const Layout& layout, std::size_t members) {
  for (const Paths& paths : layout.paths) {
    SCOPED_TRACE(name_of(paths.algorithm));
    ASSERT_EQ(paths.hops.empty(), paths.algorithm == Algorithm::nvls || paths.algorithm == Algorithm::nvls_tree);
    if (paths.hops.empty()) continue;
    std::map<LinkId, double> sum, expected;
    for (const Hop& hop : paths.hops) {
      EXPECT_LT(hop.from, members);
      EXPECT_LT(hop.to, members);
      for (const Crossing& crossing : hop.crossings)
        sum[crossing.link] += crossing.multiplicity / channels_of_hops(paths, members) / hop.parts;
    }
    for (const Crossing& crossing : paths.crossings)
      expected[crossing.link] = static_cast<double>(crossing.multiplicity) / paths.channels;
    ASSERT_EQ(sum.size(), expected.size());
    for (const auto& [link, crossed] : expected) EXPECT_NEAR(sum[link], crossed, 1e-12 * crossed) << link;
  }
}

class Hops : public testing::TestWithParam<ClusterSpec (*)(std::int64_t)> {};
INSTANTIATE_TEST_SUITE_P(Clusters, Hops, testing::Values(&nodes_of_four, &without_rails, &hashed, &two_nics_each_and_a_dead_one));

TEST_P(Hops, AddUpToTheCrossings) {
  const Cluster cluster(GetParam()(32));
  const std::vector<std::uint32_t> uneven{0, 1, 2, 4, 5, 9};
  for (const auto& members : {every(4), every(2), every(32), every(32, 2), every(32, 4), every(16, 3), uneven}) {
    SCOPED_TRACE(members.size());
    expect_equal_in_sum(lay_group(cluster, members, {.tree = true, .nvls = true}, Detail::hops), members.size());
    expect_equal_in_sum(lay_exchange(cluster, members, Detail::hops), members.size());
    expect_equal_in_sum(lay_dispatch(cluster, members, 6, 2, Detail::hops), members.size());
  }
  expect_equal_in_sum(lay_pair(cluster, 1, 2, Detail::hops), 2);
  expect_equal_in_sum(lay_pair(cluster, 1, 30, Detail::hops), 2);
}

TEST_P(Hops, LeaveTheSumsAsTheyAre) {
  const Cluster cluster(GetParam()(32));
  const auto expect_same = [](const Layout& with, const Layout& without) {
    ASSERT_EQ(with.paths.size(), without.paths.size());
    EXPECT_EQ(with.inter_latency, without.inter_latency);
    for (std::size_t p = 0; p < with.paths.size(); ++p) {
      EXPECT_EQ(with.paths[p].crossings, without.paths[p].crossings);
      EXPECT_EQ(with.paths[p].channels, without.paths[p].channels);
      EXPECT_TRUE(without.paths[p].hops.empty());
    }
  };
  expect_same(lay_group(cluster, every(32), {.tree = true}, Detail::hops), lay_group(cluster, every(32), {.tree = true}));
  expect_same(lay_exchange(cluster, every(32), Detail::hops), lay_exchange(cluster, every(32)));
  expect_same(lay_pair(cluster, 3, 17, Detail::hops), lay_pair(cluster, 3, 17));
}

TEST(Hops, OfARingGoOnceRound) {
  const Cluster cluster(nodes_of_four(32));
  for (const auto& members : {every(4), every(32), every(32, 2), {0, 1, 2, 4, 5, 9}}) {
    const Layout layout = lay_group(cluster, members, {}, Detail::hops);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> next;  // by channel and member
    for (const Hop& hop : layout.paths.front().hops) {
      EXPECT_TRUE(next.try_emplace({hop.channel, hop.from}, hop.to).second);
      EXPECT_EQ(hop.between_nodes, cluster.node_of(members[hop.from]) != cluster.node_of(members[hop.to]));
    }
    const auto n = static_cast<std::uint32_t>(members.size());
    ASSERT_EQ(next.size() % n, 0U);
    for (std::uint32_t channel = 0; channel < next.size() / n; ++channel) {
      std::set<std::uint32_t> seen;
      std::uint32_t at = 0;
      for (std::uint32_t i = 0; i < n; ++i) seen.insert(at = next.at({channel, at}));
      EXPECT_EQ(seen.size(), n);
      EXPECT_EQ(at, 0U);
    }
  }
}

TEST(Hops, OfATreeReachTheRootAndComeBack) {
  const Cluster cluster(nodes_of_four(28));
  const Layout layout = lay_group(cluster, every(28), {.tree = true}, Detail::hops);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> parent;
  std::set<std::array<std::uint32_t, 3>> ups, downs;
  for (const Hop& hop : layout.find(Algorithm::tree)->hops) {
    hop.down ? downs.insert({hop.channel, hop.to, hop.from}) : ups.insert({hop.channel, hop.from, hop.to});
    if (!hop.down) {
      EXPECT_TRUE(parent.try_emplace({hop.channel, hop.from}, hop.to).second);
    }
  }
  EXPECT_EQ(ups, downs);
  EXPECT_EQ(ups.size(), 8U * 27U);  // channels: two trees on four rails
  for (std::uint32_t channel = 0; channel < 8; ++channel) {
    std::set<std::uint32_t> roots;
    for (std::uint32_t member = 0; member < 28; ++member) {
      std::uint32_t at = member;
      for (int steps = 0; parent.contains({channel, at}); at = parent.at({channel, at})) ASSERT_LT(++steps, 28);
      roots.insert(at);
    }
    EXPECT_EQ(roots.size(), 1U);
  }
}

}  // namespace
}  // namespace tandem::topology::hops_test
