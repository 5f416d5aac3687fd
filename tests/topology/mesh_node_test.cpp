// Nodes in which each two GPUs have a link of their own.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "topology/layouts.h"

namespace tandem::topology::mesh_node_test {
namespace {

constexpr BytesPerSecond of_a_link = 10e9;

/// Nodes of 8 GPUs with 7 links of 10 GB/s each way, and 8 NICs of 50 GB/s.
ClusterSpec meshes(std::int64_t gpus) {
  ClusterSpec spec;
  spec.gpus = gpus;
  spec.gpus_per_node = 8;
  spec.node_links = NodeLinks::mesh;
  spec.nvlink_GBps = 70;
  spec.nics_per_node = 8;
  spec.nic_gbps = 400;
  return spec;
}

std::vector<std::uint32_t> gpus(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> list(count);
  std::iota(list.begin(), list.end(), first);
  return list;
}

std::map<std::string, double> load(const Cluster& cluster, const Paths& paths) {
  std::map<std::string, double> sums;
  for (const Crossing& c : paths.crossings)
    sums[cluster.link(c.link).name] += static_cast<double>(c.multiplicity) / paths.channels;
  return sums;
}

double in_node(const Cluster& cluster, const Paths& paths) {
  double sum = 0;
  for (const Crossing& c : paths.crossings)
    if (cluster.link(c.link).tier == Tier::nvlink) sum += static_cast<double>(c.multiplicity) / paths.channels;
  return sum;
}

TEST(MeshNode, HasALinkForEachTwoGpus) {
  const Cluster cluster(meshes(24));
  std::set<std::string> names;
  for (const Link& link : cluster.links()) {
    if (link.tier != Tier::nvlink) continue;
    names.insert(link.name);
    EXPECT_DOUBLE_EQ(link.capacity, of_a_link) << link.name;
  }
  EXPECT_EQ(names.size(), 3U * 8U * 7U);  // three nodes, both directions
  for (const char* name : {"gpu0-gpu1 out", "gpu6-gpu7 in", "gpu8-gpu15 out", "gpu22-gpu23 in"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_FALSE(names.contains("gpu7-gpu8 out"));
}

class GroupInAMesh : public testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, GroupInAMesh, testing::Values(2U, 3U, 4U, 5U, 8U));

// Rings through all orders use each directed link of the members equally: n hops of one channel over n (n - 1) links.
TEST_P(GroupInAMesh, RingsReachAllLinksAmongTheMembers) {
  const std::uint32_t n = GetParam();
  const Cluster cluster(meshes(8));
  const Layout layout = lay_group(cluster, gpus(0, n));
  const Paths& ring = layout.paths.front();
  const auto loads = load(cluster, ring);
  EXPECT_EQ(loads.size(), std::size_t{n} * (n - 1));
  for (const auto& [link, times] : loads) EXPECT_DOUBLE_EQ(times, 1.0 / (n - 1)) << link;
  EXPECT_DOUBLE_EQ(ring.bandwidth * ring.channels, (n - 1) * of_a_link);
}

TEST_P(GroupInAMesh, AllToAllReachesThemToo) {
  const std::uint32_t n = GetParam();
  const Cluster cluster(meshes(8));
  const Layout layout = lay_exchange(cluster, gpus(0, n));
  for (const Crossing& crossing : layout.paths.front().crossings) EXPECT_EQ(crossing.multiplicity, 1U);
  EXPECT_EQ(layout.paths.front().crossings.size(), std::size_t{n} * (n - 1));
  EXPECT_EQ(layout.paths.front().channels, n - 1);
}

// Over several nodes a ring's channel makes n - 1 hops in each, and a tree's twice as many, up and down.
TEST_P(GroupInAMesh, RingsAndTreesOverNodesUseEachLinkEqually) {
  const std::uint32_t n = GetParam();
  const Cluster cluster(meshes(32));
  std::vector<std::uint32_t> members;
  for (std::uint32_t node = 0; node < 4; ++node)
    for (const std::uint32_t gpu : gpus(8 * node, n)) members.push_back(gpu);
  const Layout layout = lay_group(cluster, members, {.tree = true});
  ASSERT_EQ(layout.paths.size(), 2U);
  EXPECT_NEAR(in_node(cluster, layout.paths[0]), 4.0 * (n - 1), 1e-9);
  EXPECT_NEAR(in_node(cluster, layout.paths[1]), 4.0 * (n - 1) * 2, 1e-9);
  for (const Paths& paths : layout.paths) {
    std::set<double> times;
    for (const auto& [link, load] : load(cluster, paths))
      if (link.starts_with("gpu")) times.insert(load);
    EXPECT_EQ(times.size(), 1U);
  }
}

TEST(MeshNode, TwoGpusHaveOneLink) {
  const Cluster cluster(meshes(8));
  const Layout pair = lay_pair(cluster, 5, 2);
  ASSERT_EQ(pair.paths.front().crossings.size(), 1U);
  EXPECT_EQ(cluster.link(pair.paths.front().crossings.front().link).name, "gpu2-gpu5 in");
  EXPECT_DOUBLE_EQ(pair.paths.front().slowest, of_a_link);
}

// A ring of GPUs 0 to 3 and one of GPUs 0, 4: of one GPU, and of no common link, where behind switches they share its port.
TEST(MeshNode, GroupsOfOneGpuDoNotShareLinks) {
  for (const NodeLinks links : {NodeLinks::mesh, NodeLinks::switched}) {
    ClusterSpec spec = meshes(8);
    spec.node_links = links;
    const Cluster cluster(spec);
    const std::vector<std::uint32_t> other{0, 4};
    const auto one = load(cluster, lay_group(cluster, gpus(0, 4)).paths.front());
    std::size_t shared = 0;
    for (const auto& [link, times] : load(cluster, lay_group(cluster, other).paths.front())) shared += one.count(link);
    EXPECT_EQ(shared, links == NodeLinks::mesh ? 0U : 2U);
  }
}

// On the way to another rail's NIC, and where a token goes on from the GPU at which it entered its node.
TEST(MeshNode, DispatchOverNodesSendsAsMuchAsBehindSwitches) {
  for (const std::uint32_t nodes : {1U, 2U}) {
    ClusterSpec spec = meshes(16);
    const Cluster mesh(spec);
    spec.node_links = NodeLinks::switched;
    const Cluster switched(spec);
    const auto both = [&](const auto& lay) {
      // Behind switches a message crosses two links, of the sender and of the receiver.
      EXPECT_NEAR(2 * in_node(mesh, lay(mesh).paths.front()), in_node(switched, lay(switched).paths.front()), 1e-9);
    };
    both([&](const Cluster& cluster) { return lay_dispatch(cluster, gpus(0, 8 * nodes), 4, 1); });
    both([&](const Cluster& cluster) { return lay_exchange(cluster, gpus(0, 8 * nodes)); });
    both([&](const Cluster& cluster) { return lay_token_dispatch(cluster, gpus(0, 8 * nodes), {4, 1.5, 3}); });
  }
}

TEST(MeshNode, AFaultOfAGpuSlowsAllOfItsLinks) {
  ClusterSpec spec = meshes(8);
  spec.link_faults = {{.where = LinkFault::Where::gpu, .index = 3, .factor = 0.5}};
  std::size_t slow = 0;
  for (const Link& link : Cluster(spec).links())
    if (link.tier == Tier::nvlink && link.capacity < of_a_link) {
      EXPECT_DOUBLE_EQ(link.capacity, of_a_link / 2);
      EXPECT_NE(link.name.find("gpu3"), std::string::npos);
      ++slow;
    }
  EXPECT_EQ(slow, 2U * 7U);
}

}  // namespace
}  // namespace tandem::topology::mesh_node_test
