#include "topology/inventory.h"

#include <gtest/gtest.h>

namespace tandem::topology::inventory_test {
namespace {

/// Nodes of 2 GPUs and NICs of 50 GB/s; 4 NICs below a leaf, 2 leaves below a pod; 1:2 above the leaf, 1:4 above the pod.
ClusterSpec pairs(std::int64_t nodes) {
  ClusterSpec spec;
  spec.gpus = 2 * nodes;
  spec.gpus_per_node = spec.nics_per_node = 2;
  spec.nvlink_GBps = 100;
  spec.nic_gbps = 400;
  spec.fabric = {.rail_optimized = false, .leaf_ports = 4, .pod_leaves = 2, .oversubscription = {1, 2, 4}};
  return spec;
}

void expect_tier(const TierInventory& tier, Tier name, std::int64_t ports, std::int64_t cables, double total, double over) {
  EXPECT_EQ(tier.tier, name);
  EXPECT_EQ(tier.ports, ports);
  EXPECT_EQ(tier.cables, cables);
  EXPECT_DOUBLE_EQ(tier.total, total);
  EXPECT_DOUBLE_EQ(tier.oversubscription, over);
}

// 16 NICs: 4 leaves of 4, with 2 cables up each; 2 pods of 2 leaves and thus 4 cables, of which 4 / 4 goes up.
TEST(Inventory, CountsAFatTreeByHand) {
  const Inventory inventory = take_inventory(Cluster(pairs(8)));
  EXPECT_EQ(inventory.gpus, 16);
  EXPECT_EQ(inventory.nodes, 8);
  EXPECT_EQ(inventory.nics, 16);
  EXPECT_EQ(inventory.leaves, 4);
  EXPECT_EQ(inventory.pods, 2);
  EXPECT_EQ(inventory.spines, 2 * 2);
  EXPECT_EQ(inventory.cores, 1);
  ASSERT_EQ(inventory.tiers.size(), 4U);
  expect_tier(inventory.tiers[0], Tier::nvlink, 16, 16, 16 * 100e9, 0);
  expect_tier(inventory.tiers[1], Tier::nic, 16, 16, 16 * 50e9, 1);
  expect_tier(inventory.tiers[2], Tier::leaf, 4, 8, 8 * 50e9, 2);
  expect_tier(inventory.tiers[3], Tier::spine, 2, 2, 2 * 50e9, 4);
  // One half is one pod: its single cable, of the 8 NICs that could fill 8.
  EXPECT_DOUBLE_EQ(inventory.bisection, 50e9);
  EXPECT_DOUBLE_EQ(inventory.full_bisection, 8 * 50e9);
}

// Meta's 24K cluster (arXiv 2407.21783, section 3.3.1): 1,536 racks of 16 GPUs, 8 pods of 3,072, 1:7 between them. Half of the
// cluster is 4 pods, and each half sends a seventh of what its 12,288 NICs could.
TEST(Inventory, Llama3s24kCluster) {
  ClusterSpec spec;
  spec.gpus = 24'576;
  spec.nvlink_GBps = 450;
  spec.nic_gbps = 400;
  spec.nic_efficiency = 0.96;
  spec.fabric = {.rail_optimized = false, .leaf_ports = 16, .pod_leaves = 192, .oversubscription = {1, 1, 7}};
  const Inventory inventory = take_inventory(Cluster(spec));
  EXPECT_EQ(inventory.leaves, 1536);
  EXPECT_EQ(inventory.pods, 8);
  EXPECT_EQ(inventory.spines, 8 * 16);
  EXPECT_NEAR(inventory.tiers.back().oversubscription, 7, 1e-9);
  EXPECT_DOUBLE_EQ(inventory.full_bisection, 12'288 * 48e9);
  EXPECT_NEAR(inventory.bisection / inventory.full_bisection, 1.0 / 7, 1e-6);  // counted in whole MB/s
}

TEST(Inventory, OnePodHasNoCore) {
  const Inventory inventory = take_inventory(Cluster(pairs(4)));
  EXPECT_EQ(inventory.pods, 1);
  EXPECT_EQ(inventory.cores, 0);
  EXPECT_EQ(inventory.tiers.back().tier, Tier::leaf);
  EXPECT_DOUBLE_EQ(inventory.bisection / inventory.full_bisection, 0.5);
}

TEST(Inventory, OversubscriptionBelowTheLeafNarrowsTheNic) {
  ClusterSpec spec = pairs(8);
  spec.fabric.oversubscription = {2, 1, 1};
  const Inventory inventory = take_inventory(Cluster(spec));
  EXPECT_DOUBLE_EQ(inventory.tiers[1].oversubscription, 2);
  EXPECT_DOUBLE_EQ(inventory.tiers[2].oversubscription, 0.5);  // the leaf's cables are as wide as before
  EXPECT_DOUBLE_EQ(inventory.bisection / inventory.full_bisection, 0.5);
}

TEST(Inventory, OneNodeHasNoBisection) {
  const Inventory inventory = take_inventory(Cluster(pairs(1)));
  EXPECT_EQ(inventory.full_bisection, 0);
  ClusterSpec alone = pairs(1);
  alone.nics_per_node = 0;
  EXPECT_EQ(take_inventory(Cluster(alone)).leaves, 0);
  EXPECT_EQ(take_inventory(Cluster(alone)).tiers.size(), 1U);
}

// 3 groups of 2 leaves; without oversubscription each sends all of its 8 NICs' 400 GB/s out, half of it to each other group.
TEST(Inventory, DragonflyGroupsHaveNoCore) {
  ClusterSpec spec = pairs(12);
  spec.fabric.kind = FabricSpec::Kind::dragonfly_plus;
  spec.fabric.oversubscription = {1, 1, 1};
  const Inventory inventory = take_inventory(Cluster(spec));
  EXPECT_EQ(inventory.pods, 3);
  EXPECT_EQ(inventory.spines, 3 * 4);
  EXPECT_EQ(inventory.cores, 0);
  expect_tier(inventory.tiers.back(), Tier::spine, 3, 3 * 4, 3 * 200e9, 1);
}

TEST(Inventory, ListedSwitchesAreCountedAsListed) {
  ClusterSpec spec = pairs(4);
  spec.fabric.kind = FabricSpec::Kind::custom;
  spec.fabric.switches = {{.name = "a", .nics = {{0, 3}}, .up = {{"top", 2, 400}}},
                          {.name = "b", .nics = {{4, 7}}, .up = {{"top", 1, 400}}},
                          {.name = "top"}};
  const Inventory inventory = take_inventory(Cluster(spec));
  EXPECT_EQ(inventory.leaves, 2);
  EXPECT_EQ(inventory.spines, 1);
  EXPECT_EQ(inventory.cores, 0);
  expect_tier(inventory.tiers.back(), Tier::leaf, 2, 3, 3 * 50e9, 4);  // b: 4 NICs on one cable
}

TEST(Inventory, ADeadCableIsMissed) {
  ClusterSpec spec = pairs(8);
  spec.link_faults = {{.where = LinkFault::Where::leaf, .index = 2, .cable = 1}};
  const TierInventory leaf = take_inventory(Cluster(spec)).tiers[2];
  EXPECT_DOUBLE_EQ(leaf.total, 7 * 50e9);
  EXPECT_DOUBLE_EQ(leaf.oversubscription, 4);
}

}  // namespace
}  // namespace tandem::topology::inventory_test
