#include "topology/fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "topology/layouts.h"

namespace tandem::topology::fabric_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

/// Nodes of 2 GPUs and NICs of 50 GB/s; 4 NICs below a leaf, 2 leaves below a pod.
ClusterSpec pairs(std::int64_t nodes) {
  ClusterSpec spec;
  spec.gpus = 2 * nodes;
  spec.gpus_per_node = spec.nics_per_node = 2;
  spec.nvlink_GBps = 100;
  spec.nic_gbps = 400;
  spec.nic_latency_us = 10;
  spec.switch_latency_us = 1;
  spec.fabric = {.rail_optimized = false, .leaf_ports = 4, .pod_leaves = 2};
  return spec;
}

std::vector<std::string> names(const Fabric& fabric, const Fabric::Route& route) {
  std::vector<std::string> list;
  for (const Fabric::Step& step : route) list.push_back((step.up ? "+" : "-") + fabric.bundles()[step.bundle].name);
  return list;
}

std::map<std::string, double> loads(const Cluster& cluster, const Layout& layout) {
  std::map<std::string, double> times;
  const Paths& paths = layout.paths.front();
  for (const Crossing& c : paths.crossings) times[cluster.link(c.link).name] += double(c.multiplicity) / paths.channels;
  return times;
}

TEST(Fabric, ATreeClimbsToWhereBothMeet) {
  const Fabric fabric(pairs(8));  // 16 NICs, 4 leaves, 2 pods
  EXPECT_TRUE(fabric.is_tree());
  EXPECT_THAT(names(fabric, fabric.routes(0, 1).front()), ElementsAre("+leaf0", "-leaf1"));
  EXPECT_THAT(names(fabric, fabric.routes(0, 3).front()), ElementsAre("+leaf0", "+pod0", "-pod1", "-leaf3"));
  EXPECT_TRUE(fabric.routes(2, 2).front().empty());
}

TEST(Fabric, DragonflyGroupsAreJoinedDirectly) {
  ClusterSpec spec = pairs(12);  // 24 NICs, 6 leaves, 3 groups
  spec.fabric.kind = FabricSpec::Kind::dragonfly_plus;
  const Fabric fabric(spec);
  EXPECT_FALSE(fabric.is_tree());
  ASSERT_EQ(fabric.routes(0, 5).size(), 1U);
  EXPECT_THAT(names(fabric, fabric.routes(0, 5).front()), ElementsAre("+leaf0", "+group0-2", "-leaf5"));
  EXPECT_THAT(names(fabric, fabric.routes(5, 0).front()), ElementsAre("+leaf5", "-group0-2", "-leaf0"));
  // A group sends as much out as its two leaves bring, half of it to each other group: 2 * 4 NICs of 50 GB/s / 2.
  EXPECT_DOUBLE_EQ(fabric.capacity(fabric.routes(0, 5).front()[1].bundle), 200e9);
}

ClusterSpec two_spines() {
  ClusterSpec spec = pairs(4);
  spec.fabric.kind = FabricSpec::Kind::custom;
  spec.fabric.switches = {{.name = "a", .nics = {{0, 3}}, .up = {{"left", 1, 400}, {"right", 1, 200}}},
                          {.name = "b", .nics = {{4, 7}}, .up = {{"left", 1, 400}, {"right", 1, 400}}},
                          {.name = "left", .up = {}},
                          {.name = "right", .up = {}}};
  return spec;
}

TEST(Fabric, EqualFractionsOverAllShortestWays) {
  const Cluster cluster(two_spines());
  const auto times = loads(cluster, lay_pair(cluster, 0, 4));
  EXPECT_EQ(times.at("nic0 out"), 1);
  for (const char* half : {"a-left out", "a-right out", "b-left in", "b-right in"}) EXPECT_EQ(times.at(half), 0.5) << half;
  EXPECT_DOUBLE_EQ(lay_pair(cluster, 0, 4).inter_latency, 13e-6);  // three switches
  EXPECT_FALSE(cluster.is_regular());
}

TEST(Fabric, UplinksInACircleAreRefused) {
  ClusterSpec spec = two_spines();
  spec.fabric.switches[2].up = {{"a", 1, 400}};
  EXPECT_THAT([&] { Fabric{spec}; }, ThrowsMessage<TopologyError>(HasSubstr("in a circle")));
}

TEST(Fabric, LooseNicsAndSeparateIslandsAreRefused) {
  ClusterSpec spec = two_spines();
  spec.fabric.switches[1].nics = {{4, 6}};
  EXPECT_THAT([&] { Fabric{spec}; }, ThrowsMessage<TopologyError>(HasSubstr("NIC 1 of node 3 hangs on no switch")));
  spec = two_spines();
  spec.fabric.switches[1].up.clear();
  EXPECT_THAT([&] { Fabric{spec}; }, ThrowsMessage<TopologyError>(HasSubstr("no way leads from a to b")));
}

TEST(Fabric, DeadCablesTakeTheirShareAndAllOfThemDisconnect) {
  ClusterSpec spec = pairs(8);
  spec.link_faults = {{.where = LinkFault::Where::leaf, .index = 2, .cable = 1}};
  EXPECT_DOUBLE_EQ(Fabric(spec).capacity(2), 3 * 50e9);
  spec.link_faults = {{.where = LinkFault::Where::leaf, .index = 2}};
  EXPECT_THAT([&] { Fabric{spec}; }, ThrowsMessage<TopologyError>(HasSubstr("no way leads from leaf0 to leaf2")));
  spec.link_faults = {{.where = LinkFault::Where::leaf, .index = 4}};
  EXPECT_THAT([&] { Fabric{spec}; }, ThrowsMessage<TopologyError>(HasSubstr("there is no leaf 4")));
}

TEST(Fabric, ADeadNicsGpuUsesItsNeighbours) {
  ClusterSpec spec = pairs(2);
  spec.link_faults = {{.where = LinkFault::Where::nic, .index = 0}};
  const Cluster cluster(spec);
  const auto times = loads(cluster, lay_pair(cluster, 0, 2));
  EXPECT_FALSE(times.contains("nic0 out"));
  for (const char* link : {"gpu0 out", "gpu1 in", "nic1 out", "nic2 in"}) EXPECT_EQ(times.at(link), 1) << link;
  spec.link_faults.push_back({.where = LinkFault::Where::rail, .index = 1});
  EXPECT_THAT([&] { Cluster{spec}; }, ThrowsMessage<TopologyError>(HasSubstr("node 0 is unreachable")));
}

TEST(Ecmp, AFlowIsOnOneCablePerBundleAndComesDownWhereItWentUp) {
  ClusterSpec spec = pairs(8);
  spec.fabric.routing = FlowRouting::ecmp;
  const Cluster cluster(spec);
  std::set<std::string> cables;
  for (std::uint32_t to = 8; to < 16; ++to) {
    std::map<std::string, std::vector<std::string>> by_bundle;
    for (const auto& [name, times] : loads(cluster, lay_pair(cluster, 0, to))) {
      EXPECT_EQ(times, 1) << name;
      const std::size_t cable = name.find(" cable ");
      if (cable != std::string::npos) by_bundle[name.substr(0, cable)].push_back(name.substr(cable + 7, 1));
    }
    ASSERT_EQ(by_bundle.size(), 4U);
    const std::string leaf = to < 12 ? "leaf2" : "leaf3";
    EXPECT_EQ(by_bundle.at("leaf0"), by_bundle.at(leaf));   // one spine
    EXPECT_EQ(by_bundle.at("pod0"), by_bundle.at("pod1"));  // one core switch
    // Pods have two cables for each of their four spines.
    EXPECT_EQ(std::stoi(by_bundle.at("pod0").front()) / 2, std::stoi(by_bundle.at("leaf0").front()));
    cables.insert(by_bundle.at("leaf0").front());
  }
  EXPECT_GT(cables.size(), 1U);
}

TEST(Ecmp, TheSeedDecidesAndTheMeanIsIdealSpreading) {
  ClusterSpec spec = pairs(8);
  spec.fabric.routing = FlowRouting::ecmp;
  std::map<std::string, double> sum;
  constexpr int seeds = 4000;
  for (int seed = 0; seed < seeds; ++seed) {
    spec.fabric.ecmp_seed = static_cast<std::uint64_t>(seed);
    const Cluster cluster(spec);
    for (const auto& [name, times] : loads(cluster, lay_pair(cluster, 0, 8))) sum[name] += times / seeds;
  }
  // Four cables, each with probability 1/4: sigma = sqrt(3)/4 / sqrt(4000) = 0.0068.
  for (int cable = 0; cable < 4; ++cable) EXPECT_NEAR(sum.at("leaf0 cable " + std::to_string(cable) + " out"), 0.25, 5 * 0.0068);
}

TEST(Ecmp, SeveralFlowsShareAConnection) {
  ClusterSpec spec = pairs(8);
  spec.fabric.routing = FlowRouting::ecmp;
  spec.fabric.flows = 8;
  const Cluster cluster(spec);
  double leaf = 0;
  std::size_t used = 0;
  for (const auto& [name, times] : loads(cluster, lay_pair(cluster, 0, 8))) {
    if (!name.starts_with("leaf0")) continue;
    leaf += times;
    ++used;
  }
  EXPECT_DOUBLE_EQ(leaf, 1);
  EXPECT_GT(used, 1U);
}

TEST(Ecmp, DeadCablesAreNotChosen) {
  ClusterSpec spec = pairs(8);
  spec.fabric.routing = FlowRouting::ecmp;
  for (std::int64_t cable : {0, 1, 3}) spec.link_faults.push_back({.where = LinkFault::Where::leaf, .index = 2, .cable = cable});
  const Cluster cluster(spec);
  for (std::uint32_t from = 0; from < 8; ++from) {
    const auto times = loads(cluster, lay_pair(cluster, from, 8));
    EXPECT_EQ(times.at("leaf2 cable 2 in"), 1);
  }
}

// Without oversubscription each half's NICs can send all they have; 1:4 above the leaves leaves a quarter.
TEST(Bisection, FollowsTheOversubscription) {
  ClusterSpec spec = pairs(8);
  EXPECT_DOUBLE_EQ(Fabric(spec).bisection(50e9), 8 * 50e9);
  spec.fabric.oversubscription = {1, 4, 1};
  EXPECT_DOUBLE_EQ(Fabric(spec).bisection(50e9), 2 * 50e9);
  spec.fabric.oversubscription = {1, 1, 8};
  EXPECT_DOUBLE_EQ(Fabric(spec).bisection(50e9), 1 * 50e9);
}

TEST(Oversubscription, IsThatOfTheTiersThatAreBuilt) {
  const auto is_oversubscribed = [](FabricSpec::Kind kind, int tiers, std::vector<double> ratios) {
    return FabricSpec{.kind = kind, .tiers = tiers, .oversubscription = std::move(ratios)}.is_oversubscribed();
  };
  using enum FabricSpec::Kind;
  EXPECT_FALSE(is_oversubscribed(fat_tree, 3, {}));
  EXPECT_FALSE(is_oversubscribed(fat_tree, 3, {2}));  // NICs to leaves: the same for all ranks
  EXPECT_FALSE(is_oversubscribed(fat_tree, 3, {1, 1, 1}));
  EXPECT_TRUE(is_oversubscribed(fat_tree, 3, {1, 1, 7}));
  EXPECT_TRUE(is_oversubscribed(fat_tree, 2, {1, 1.5}));
  EXPECT_FALSE(is_oversubscribed(fat_tree, 2, {1, 1, 7}));
  EXPECT_TRUE(is_oversubscribed(dragonfly_plus, 3, {1, 1, 2}));
  EXPECT_FALSE(is_oversubscribed(one_switch, 3, {1, 1, 7}));
}

}  // namespace
}  // namespace tandem::topology::fabric_test
