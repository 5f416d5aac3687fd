// Trees, NVLS and messages over rails; rings and plain messages are in cluster_test.cpp.

#include "topology/layouts.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "topology/tree.h"

namespace tandem::topology::layouts_test {
namespace {

ClusterSpec rails(std::int64_t gpus) {
  ClusterSpec spec;
  spec.gpus = gpus;
  spec.gpus_per_node = spec.nics_per_node = 4;
  spec.nvlink_GBps = 100;
  spec.nic_gbps = 400;
  spec.nvls = true;
  spec.fabric = {.rail_optimized = true, .leaf_ports = 2, .pod_leaves = 4};
  return spec;
}

std::vector<std::uint32_t> all(std::int64_t gpus) {
  std::vector<std::uint32_t> list(static_cast<std::size_t>(gpus));
  std::iota(list.begin(), list.end(), 0U);
  return list;
}

double load(const Cluster& cluster, const Paths& paths, const std::string& link) {
  double sum = 0;
  for (const Crossing& c : paths.crossings) sum += cluster.link(c.link).name == link ? c.multiplicity : 0;
  return sum / paths.channels;
}

class Trees : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Trees, testing::Values(2U, 3U, 4U, 5U, 7U, 8U, 16U, 31U, 100U));

TEST_P(Trees, AreBinaryAndShallow) {
  const std::uint32_t n = GetParam();
  for (const bool second : {false, true}) {
    const std::vector<std::uint32_t> parents = binary_tree(n, second);
    std::map<std::uint32_t, int> children;
    int roots = 0;
    for (std::uint32_t node = 0; node < n; ++node) {
      std::uint32_t height = 0;
      for (std::uint32_t at = node; parents[at] != no_parent; at = parents[at]) ASSERT_LE(++height, n);
      EXPECT_LE(height, std::bit_width(n));
      parents[node] == no_parent ? ++roots : ++children[parents[node]];
    }
    EXPECT_EQ(roots, 1);
    for (const auto& [node, count] : children) EXPECT_LE(count, 2) << node;
  }
}

TEST_P(Trees, ANodeIsALeafInOneOfThem) {
  const std::uint32_t n = GetParam();
  std::vector<int> inner(n, 0);
  for (const bool second : {false, true}) {
    const std::vector<std::uint32_t> parents = binary_tree(n, second);
    std::set<std::uint32_t> with_children;
    for (const std::uint32_t parent : parents) {
      if (parent != no_parent) with_children.insert(parent);
    }
    for (const std::uint32_t node : with_children) ++inner[node];
  }
  // With an odd number shifted by one, one node can be inner in both.
  EXPECT_LE(std::ranges::count(inner, 2), n % 2 == 0 ? 0 : 1);
}

// In an even double tree each node but the roots sends its half vector up once and down to two children in one tree: over both
// trees 4 halves leave it, 4 arrive: 2 vectors, as on a ring of many. Per rail a quarter.
TEST(TreeLayout, LoadsNicsAsARingDoes) {
  const Cluster cluster(rails(64));
  const Layout layout = lay_group(cluster, all(64), {.tree = true});
  const Paths* tree = layout.find(Algorithm::tree);
  ASSERT_NE(tree, nullptr);
  double most = 0, sum = 0;
  for (int nic = 0; nic < 64; ++nic) {
    const double out = load(cluster, *tree, "nic" + std::to_string(nic) + " out");
    EXPECT_EQ(out, load(cluster, *tree, "nic" + std::to_string(nic) + " in"));  // every edge is used both ways
    most = std::max(most, out);
    sum += out;
  }
  EXPECT_EQ(most, 2.0 / 4);
  EXPECT_DOUBLE_EQ(sum, 4 * 15 * 2 * 2 / 8.0);  // rails x edges x directions x trees, an eighth of the vector each
}

// A chain of L: of 2 L channels, each GPU passes on in all but one, up and down.
TEST(TreeLayout, ChainsLoadEveryPortAlike) {
  const Cluster cluster(rails(16));
  const Layout layout = lay_group(cluster, all(16), {.tree = true});
  for (int gpu = 0; gpu < 16; ++gpu)
    EXPECT_EQ(load(cluster, *layout.find(Algorithm::tree), "gpu" + std::to_string(gpu) + " out"), 2.0 * 2 * 3 / 8);
}

TEST(TreeLayout, OnlyOverNodesAndWhereAsked) {
  const Cluster cluster(rails(16));
  EXPECT_EQ(lay_group(cluster, all(4), {.tree = true}).find(Algorithm::tree), nullptr);
  EXPECT_EQ(lay_group(cluster, all(16)).find(Algorithm::tree), nullptr);
}

TEST(Nvls, MovesTheVectorOnceAndAPart) {
  const Cluster cluster(rails(16));
  const Layout layout = lay_group(cluster, all(4), {.nvls = true});
  ASSERT_NE(layout.find(Algorithm::nvls), nullptr);
  EXPECT_EQ(load(cluster, *layout.find(Algorithm::nvls), "gpu2 out"), 5.0 / 4);
  EXPECT_EQ(lay_group(cluster, all(16), {.nvls = true}).find(Algorithm::nvls), nullptr);
  ClusterSpec without = rails(16);
  without.nvls = false;
  EXPECT_EQ(lay_group(Cluster(without), all(4), {.nvls = true}).find(Algorithm::nvls), nullptr);
}

// 16 GPUs in 4 nodes: inside each as in one, and each of the 3 edges of a tree carries its half of every part up and down.
TEST(NvlsTree, MovesTheVectorAlongTheTreesOnce) {
  const Cluster cluster(rails(16));
  const Layout layout = lay_group(cluster, all(16), {.nvls = true});
  const Paths* paths = layout.find(Algorithm::nvls_tree);
  ASSERT_NE(paths, nullptr);
  double over_nics = 0;
  for (int gpu = 0; gpu < 16; ++gpu) {
    EXPECT_EQ(load(cluster, *paths, "gpu" + std::to_string(gpu) + " in"), 5.0 / 4);
    over_nics += load(cluster, *paths, "nic" + std::to_string(gpu) + " out");
  }
  EXPECT_DOUBLE_EQ(over_nics, 2 * 3);
  EXPECT_EQ(lay_group(cluster, std::vector<std::uint32_t>{0, 4, 8, 12}, {.nvls = true}).find(Algorithm::nvls_tree), nullptr);
}

TEST(Exchange, StaysOnItsRail) {
  const Cluster cluster(rails(16));  // leaves of two nodes: 2 groups of 4 rails
  const Layout layout = lay_exchange(cluster, all(16));
  const Paths& paths = layout.paths.front();
  // In units of a pair's message, of which a member sends 15: to each of 8 nodes' GPUs outside the leaf group 8, on its own rail.
  EXPECT_DOUBLE_EQ(15 * load(cluster, paths, "nic5 out"), 12);
  EXPECT_DOUBLE_EQ(15 * load(cluster, paths, "leaf1 out"), 2 * 8);
  // Over NVLink: 3 to the node's own, and 3 of 4 of those that go to 12 GPUs outside change the rail first.
  EXPECT_DOUBLE_EQ(15 * load(cluster, paths, "gpu5 out"), 3 + 9);
  EXPECT_DOUBLE_EQ(15 * load(cluster, paths, "gpu5 in"), 3 + 9);
}

// Ports of 100 GB/s, NICs of 50. In a node a ring gives each port the bus rate, and NVLS n + 1 units of 1/n. Over two nodes of
// four, each of four channels has a rail to itself, at 50, and loads each port with 3/4 of what all carry: 4 * 50 * 3/4 > 100, so
// 100 / 3 for each.
TEST(Bandwidth, IsWhatPortsAndNicsLetOneChannelHave) {
  const Cluster cluster(rails(16));
  const Layout node = lay_group(cluster, all(4), {.nvls = true});
  EXPECT_DOUBLE_EQ(node.find(Algorithm::ring)->bandwidth, 100e9);
  EXPECT_DOUBLE_EQ(node.find(Algorithm::nvls)->bandwidth, 100e9 / 5);
  EXPECT_DOUBLE_EQ(lay_group(cluster, all(8)).paths.front().bandwidth, 100e9 / 3);
  const std::vector<std::uint32_t> one_per_node{0, 4, 8, 12};
  EXPECT_DOUBLE_EQ(lay_group(cluster, one_per_node).paths.front().bandwidth, 50e9);
}

TEST(Bandwidth, DoesNotSeeSwitches) {
  ClusterSpec spec = rails(16);
  spec.fabric.oversubscription = {1, 8, 8};
  EXPECT_DOUBLE_EQ(lay_group(Cluster(spec), std::vector<std::uint32_t>{0, 4, 8, 12}).paths.front().bandwidth, 50e9);
}

TEST(Bandwidth, OfAGroupWithASlowNicIsTheNics) {
  ClusterSpec spec = rails(16);
  spec.link_faults.push_back({.where = LinkFault::Where::nic, .index = 4, .factor = 0.5});
  EXPECT_DOUBLE_EQ(lay_group(Cluster(spec), std::vector<std::uint32_t>{0, 4, 8, 12}).paths.front().bandwidth, 25e9);
}

}  // namespace
}  // namespace tandem::topology::layouts_test
