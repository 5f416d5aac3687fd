#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "topology/layouts.h"

namespace tandem::topology::cluster_test {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

/// Nodes of 8 GPUs and 8 NICs; leaves of 4 nodes' rails; pods of 8 leaves, which is one group of 4 nodes. Capacities 100 and 50
/// GB/s.
ClusterSpec small_nodes(std::int64_t gpus, int tiers = 3) {
  ClusterSpec spec;
  spec.gpus = gpus;
  spec.gpus_per_node = 8;
  spec.nvlink_GBps = 100;
  spec.nics_per_node = 8;
  spec.nic_gbps = 400;
  spec.nvlink_latency_us = 1;
  spec.nic_latency_us = 10;
  spec.switch_latency_us = 0.25;
  spec.fabric = {.tiers = tiers, .rail_optimized = true, .leaf_ports = 4, .pod_leaves = 8};
  return spec;
}

const std::vector<Crossing>& crossings(const Layout& layout) { return layout.paths.front().crossings; }

std::map<std::string, std::uint32_t> by_name(const Cluster& cluster, const std::vector<Crossing>& crossings) {
  std::map<std::string, std::uint32_t> times;
  for (const Crossing& crossing : crossings) times[cluster.link(crossing.link).name] += crossing.multiplicity;
  return times;
}

std::uint32_t total(const Cluster& cluster, const std::vector<Crossing>& crossings, Tier tier) {
  std::uint32_t sum = 0;
  for (const Crossing& crossing : crossings) sum += cluster.link(crossing.link).tier == tier ? crossing.multiplicity : 0;
  return sum;
}

std::size_t count(const Cluster& cluster, Tier tier) {
  return static_cast<std::size_t>(std::ranges::count(cluster.links(), tier, &Link::tier));
}

Link link(const Cluster& cluster, const std::string& name) {
  const std::vector<Link> links = cluster.links();
  return *std::ranges::find(links, name, &Link::name);
}

std::vector<std::uint32_t> first_gpus(std::uint32_t n) {
  std::vector<std::uint32_t> gpus(n);
  std::iota(gpus.begin(), gpus.end(), 0U);
  return gpus;
}

TEST(Cluster, HasTwoDirectedLinksPerPortAndBundle) {
  const Cluster cluster(small_nodes(72));  // 9 nodes: 3 groups of at most 4, each with a leaf per rail
  EXPECT_EQ(count(cluster, Tier::nvlink), 2 * 72);
  EXPECT_EQ(count(cluster, Tier::nic), 2 * 72);
  EXPECT_EQ(count(cluster, Tier::leaf), 2 * 3 * 8);
  EXPECT_EQ(count(cluster, Tier::spine), 2 * 3);  // 24 leaves in pods of 8
}

TEST(Cluster, WithoutRailsLeavesFillUpNicByNic) {
  ClusterSpec spec = small_nodes(72);
  spec.fabric.rail_optimized = false;
  spec.fabric.leaf_ports = 5;
  EXPECT_EQ(count(Cluster(spec), Tier::leaf), 2 * 15);  // ceil(72 NICs / 5)
}

TEST(Cluster, TwoTiersHaveNoPods) { EXPECT_EQ(count(Cluster(small_nodes(72, 2)), Tier::spine), 0); }

TEST(Cluster, CapacitiesFollowTheWireRatesAndEfficiencies) {
  ClusterSpec spec = small_nodes(64);
  spec.nvlink_efficiency = 0.8;
  spec.nic_efficiency = 0.9;
  const Cluster cluster(spec);
  EXPECT_DOUBLE_EQ(link(cluster, "gpu3 out").capacity, 0.8 * 100e9);
  EXPECT_DOUBLE_EQ(link(cluster, "nic3 in").capacity, 0.9 * 50e9);  // 400 Gb/s
  EXPECT_DOUBLE_EQ(link(cluster, "leaf0 out").capacity, 4 * 0.9 * 50e9);
  EXPECT_DOUBLE_EQ(link(cluster, "pod1 in").capacity, 8 * 4 * 0.9 * 50e9);
}

TEST(Cluster, OversubscriptionDividesTheCapacityOfItsTier) {
  ClusterSpec spec = small_nodes(64);
  spec.fabric.oversubscription = {1, 2, 7};
  const Cluster cluster(spec);
  EXPECT_DOUBLE_EQ(link(cluster, "nic0 out").capacity, 50e9);
  EXPECT_DOUBLE_EQ(link(cluster, "leaf0 out").capacity, 4 * 50e9 / 2);
  EXPECT_DOUBLE_EQ(link(cluster, "pod0 out").capacity, 8 * 4 * 50e9 / 2 / 7);  // on top of the leaves'
  spec.fabric.oversubscription = {4, 1, 1};
  EXPECT_DOUBLE_EQ(link(Cluster(spec), "nic0 out").capacity, 50e9 / 4);
}

TEST(Cluster, ARingInOneNodeCrossesEachPortOnce) {
  const Cluster cluster(small_nodes(64));
  const Layout ring = lay_group(cluster, std::vector<std::uint32_t>{9, 10, 13});
  EXPECT_EQ(ring.nodes, 1);
  EXPECT_EQ(ring.paths.front().channels, 1);
  EXPECT_DOUBLE_EQ(ring.intra_latency, 1e-6);
  EXPECT_THAT(by_name(cluster, crossings(ring)),
              UnorderedElementsAre(Pair("gpu9 out", 1), Pair("gpu9 in", 1), Pair("gpu10 out", 1), Pair("gpu10 in", 1),
                                   Pair("gpu13 out", 1), Pair("gpu13 in", 1)));
}

// L channels over k nodes with L members each: L * k * L hops, of which k * L leave a node, one on each NIC, and the others leave
// each NVLink port L - 1 times.
TEST(Cluster, ARingOverNodesSpreadsOverPortsAndRails) {
  const Cluster cluster(small_nodes(512));
  for (const std::uint32_t local : {1U, 2U, 4U, 8U}) {
    for (const std::uint32_t nodes : {2U, 3U, 16U}) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t node = 0; node < nodes; ++node) {
        for (std::uint32_t i = 0; i < local; ++i) members.push_back(8 * node + i);
      }
      const Layout ring = lay_group(cluster, members);
      EXPECT_EQ(ring.paths.front().channels, local);
      EXPECT_EQ(ring.nodes, nodes);
      const std::uint32_t hops = ring.paths.front().channels * static_cast<std::uint32_t>(members.size());
      EXPECT_EQ(total(cluster, crossings(ring), Tier::nvlink) + total(cluster, crossings(ring), Tier::nic), 2 * hops);
      const auto times = by_name(cluster, crossings(ring));
      for (const std::uint32_t gpu : members) {
        for (const char* direction : {" out", " in"}) {
          EXPECT_EQ(times.at("nic" + std::to_string(gpu) + direction), 1);
          const auto port = times.find("gpu" + std::to_string(gpu) + direction);
          EXPECT_EQ(port == times.end() ? 0 : port->second, local - 1);
        }
      }
    }
  }
}

// Where ranks are placed by a list, a group comes back to a node that it has left.
TEST(Cluster, MembersBelongToTheirNodesInWhateverOrderTheyCome) {
  const Cluster cluster(small_nodes(64));
  const Layout in_order = lay_group(cluster, std::vector<std::uint32_t>{0, 1, 2, 16, 17, 18});
  for (const std::vector<std::uint32_t>& members :
       {std::vector<std::uint32_t>{0, 16, 1, 2, 17, 18}, {0, 16, 1, 17, 2, 18}, {0, 16, 17, 18, 1, 2}}) {
    const Layout layout = lay_group(cluster, members);
    EXPECT_EQ(layout.nodes, 2);
    EXPECT_EQ(layout.paths.front().channels, 3);
    EXPECT_EQ(by_name(cluster, crossings(layout)), by_name(cluster, crossings(in_order)));
  }
}

TEST(Cluster, GpusShareFewerNics) {
  ClusterSpec spec = small_nodes(16);
  spec.nics_per_node = 2;
  const Cluster cluster(spec);
  const auto times = by_name(cluster, crossings(lay_group(cluster, first_gpus(16))));
  for (const char* nic : {"nic0 out", "nic0 in", "nic1 out", "nic3 in"})
    EXPECT_EQ(times.at(nic), 4) << nic;  // 8 channels over 2 NICs
}

TEST(Cluster, ARingOnOneRailStaysBelowItsLeaf) {
  const Cluster cluster(small_nodes(64));
  const Layout ring = lay_group(cluster, std::vector<std::uint32_t>{5, 8 + 5, 16 + 5, 24 + 5});
  EXPECT_EQ(total(cluster, crossings(ring), Tier::nic), 2 * 4);
  EXPECT_EQ(total(cluster, crossings(ring), Tier::leaf), 0);
  EXPECT_DOUBLE_EQ(ring.inter_latency, 10e-6 + 0.25e-6);
}

TEST(Cluster, ARingOnOneRailLeavesEachGroupOfNodesOnce) {
  const Cluster cluster(small_nodes(64));  // 8 nodes: two groups of 4, each a pod
  std::vector<std::uint32_t> members;
  for (std::uint32_t node = 0; node < 8; ++node) members.push_back(8 * node + 5);
  const Layout ring = lay_group(cluster, members);
  const auto times = by_name(cluster, crossings(ring));
  for (const char* leaf : {"leaf5 out", "leaf5 in", "leaf13 out", "leaf13 in"}) EXPECT_EQ(times.at(leaf), 1) << leaf;
  EXPECT_EQ(total(cluster, crossings(ring), Tier::leaf), 4);
  EXPECT_EQ(total(cluster, crossings(ring), Tier::spine), 4);
  EXPECT_DOUBLE_EQ(ring.inter_latency, 10e-6 + 5 * 0.25e-6);  // the longest hop
}

TEST(Cluster, UnequalNodesGetOneChannel) {
  const Cluster cluster(small_nodes(64));
  const Layout ring = lay_group(cluster, std::vector<std::uint32_t>{0, 1, 2, 8, 16, 17});
  EXPECT_EQ(ring.paths.front().channels, 1);
  EXPECT_EQ(ring.nodes, 3);
  // 0 -> 1 -> 2 => 8 => 16 -> 17 => 0, where => leaves the node; NICs of different rails meet above the leaves.
  EXPECT_THAT(by_name(cluster, crossings(ring)),
              UnorderedElementsAre(Pair("gpu0 out", 1), Pair("gpu1 in", 1), Pair("gpu1 out", 1), Pair("gpu2 in", 1),
                                   Pair("gpu16 out", 1), Pair("gpu17 in", 1),  //
                                   Pair("nic2 out", 1), Pair("leaf2 out", 1), Pair("leaf0 in", 2), Pair("nic8 in", 1),
                                   Pair("nic8 out", 1), Pair("nic16 in", 1),  // both on rail 0: one leaf
                                   Pair("nic17 out", 1), Pair("leaf1 out", 1), Pair("nic0 in", 1)));
}

std::vector<std::string> way(const Cluster& cluster, const Layout& pair) {
  std::vector<std::string> names;
  for (const Crossing& crossing : crossings(pair)) names.push_back(cluster.link(crossing.link).name);
  return names;
}

TEST(Cluster, APairInsideANodeGoesThroughTheNvSwitch) {
  const Cluster cluster(small_nodes(64));
  const Layout pair = lay_pair(cluster, 9, 12);
  EXPECT_EQ(pair.nodes, 1);
  EXPECT_DOUBLE_EQ(pair.intra_latency, 1e-6);
  EXPECT_THAT(way(cluster, pair), ElementsAre("gpu9 out", "gpu12 in"));
}

TEST(Cluster, APairClimbsAsHighAsItMust) {
  // Pods of four leaves: rails 0-3 of the first group of nodes, then rails 4-7 of it, then the second group's.
  ClusterSpec spec = small_nodes(64);
  spec.fabric.pod_leaves = 4;
  const Cluster three(spec);
  spec.fabric.tiers = 2;
  const Cluster two(spec);

  const Layout same_leaf = lay_pair(three, 0, 8);
  EXPECT_EQ(same_leaf.nodes, 2);
  EXPECT_THAT(way(three, same_leaf), ElementsAre("nic0 out", "nic8 in"));
  EXPECT_DOUBLE_EQ(same_leaf.inter_latency, 10e-6 + 1 * 0.25e-6);

  const Layout same_pod = lay_pair(three, 0, 9);
  EXPECT_THAT(way(three, same_pod), UnorderedElementsAre("nic0 out", "leaf0 out", "leaf1 in", "nic9 in"));
  EXPECT_DOUBLE_EQ(same_pod.inter_latency, 10e-6 + 3 * 0.25e-6);

  const Layout other_pod = lay_pair(three, 0, 32);
  EXPECT_THAT(way(three, other_pod),
              UnorderedElementsAre("nic0 out", "leaf0 out", "pod0 out", "pod2 in", "leaf8 in", "nic32 in"));
  EXPECT_DOUBLE_EQ(other_pod.inter_latency, 10e-6 + 5 * 0.25e-6);

  const Layout without_pods = lay_pair(two, 0, 32);
  EXPECT_THAT(way(two, without_pods), UnorderedElementsAre("nic0 out", "leaf0 out", "leaf8 in", "nic32 in"));
  EXPECT_DOUBLE_EQ(without_pods.inter_latency, 10e-6 + 3 * 0.25e-6);
}

// Each of 8 ports sends to and receives from 7 others: in all what one channel carries.
TEST(Exchange, InsideANode) {
  const Cluster cluster(small_nodes(8));
  const Layout layout = lay_exchange(cluster, first_gpus(8));
  EXPECT_EQ(layout.paths.front().channels, 1U);
  EXPECT_EQ(layout.nodes, 1U);
  EXPECT_DOUBLE_EQ(layout.intra_latency, 1e-6);
  for (const auto& [name, times] : by_name(cluster, crossings(layout))) EXPECT_EQ(times, 1U) << name;
  EXPECT_EQ(crossings(layout).size(), 16U);
}

// Two nodes: 7 messages of each GPU stay, 8 leave through NICs, of which 7 go over NVLink to the receiver's rail first.
TEST(Exchange, AcrossNodes) {
  const Cluster cluster(small_nodes(16));
  const Layout layout = lay_exchange(cluster, first_gpus(16));
  const auto times = by_name(cluster, crossings(layout));
  EXPECT_EQ(layout.paths.front().channels, 15U);
  EXPECT_EQ(times.at("gpu3 out"), 14U);
  EXPECT_EQ(times.at("nic3 out"), 8U);
  EXPECT_EQ(times.at("nic12 in"), 8U);
}

// Eight choices in 2 of 4 nodes. Units of 1/8 of a pair's message: to each of 24 GPUs outside 8 units, of which 2/8 cross, 48
// through the NIC. All 32 messages to a node's GPU come over NVLink but the 1 in 8 that arrives there: 4 * 7 * 8 units. All in
// eighths of that.
TEST(Exchange, DispatchCrossesToANodeOnce) {
  const Cluster cluster(small_nodes(32));
  const Layout layout = lay_dispatch(cluster, first_gpus(32), 8, 2);
  const auto times = by_name(cluster, crossings(layout));
  EXPECT_EQ(layout.paths.front().channels, 31U);
  EXPECT_EQ(times.at("nic3 out"), 6U);
  EXPECT_EQ(times.at("nic30 in"), 6U);
  EXPECT_EQ(times.at("gpu3 out"), 28U);
  EXPECT_EQ(times.at("gpu30 in"), 28U);
}

}  // namespace
}  // namespace tandem::topology::cluster_test
