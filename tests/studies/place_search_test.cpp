// The search for a placement: against all placements of small jobs, and that what it returns is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "studies/place/first_placements.h"
#include "studies/place/local_search.h"
#include "tests/studies/place_job.h"

namespace tandem::studies::place_search_test {
namespace {

void expect_placement(const NodeOfBlock& nodes, const PlacedJob& job) {
  EXPECT_EQ(std::ssize(nodes), job.blocks());
  EXPECT_EQ(std::set(nodes.begin(), nodes.end()).size(), nodes.size()) << "a node is taken twice";
  for (const std::uint32_t node : nodes)
    EXPECT_NE(std::ranges::find(job.free(), node), job.free().end()) << node << " is not free";
}

/// Pairs and rings over blocks of two ranks, with volumes that no two have in common.
StepTraffic random_traffic(std::mt19937& random, std::uint32_t blocks) {
  StepTraffic traffic;
  for (std::uint32_t a = 0; a < blocks; ++a) {
    for (std::uint32_t b = 0; b < blocks; ++b) {
      if (a != b && random() % 3 == 0)
        traffic.communicators.push_back({Slot::send_forward, {2 * a, 2 * b}, {1e9 * (1 + random() % 1000)}});
    }
  }
  std::vector<std::uint32_t> ring;
  for (std::uint32_t block = 0; block < blocks; ++block) ring.push_back(2 * block + 1);
  traffic.communicators.push_back({Slot::data, ring, {1e9 * (1 + random() % 2000)}});
  return traffic;
}

/// The least of all ways to put the blocks on free nodes.
LinkTimes least_of_all(LinkLoad load, std::vector<std::uint32_t> free, std::size_t blocks) {
  std::ranges::sort(free);
  std::set<NodeOfBlock> seen;
  LinkTimes least = load.load();
  do {
    const NodeOfBlock nodes(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(blocks));
    if (!seen.insert(nodes).second) continue;
    load.place(nodes);
    if (is_less(load.load(), least)) least = load.load();
  } while (std::ranges::next_permutation(free).found);
  return least;
}

TEST(PlacementSearch, FindsTheLeastLoadOfSmallJobs) {
  const PlaceFolder folder;
  std::mt19937 random(11);
  for (int i = 0; i < 12; ++i) {
    const std::uint32_t blocks = 4 + i % 3;
    std::vector<std::uint32_t> all(16), free;
    for (std::uint32_t node = 0; node < 16; ++node) all[node] = node;
    std::ranges::shuffle(all, random);
    std::string list;
    for (std::uint32_t node = 0; node < 6; ++node) list += (node == 0 ? "" : ",") + std::to_string(all[node]);
    SCOPED_TRACE(std::to_string(blocks) + " blocks on " + list);
    const PlacedJob job(
        folder.scenario(),
        {"parallelism.pp=1", "parallelism.dp=" + std::to_string(blocks), "training.global_batch=" + std::to_string(blocks)},
        list);
    const StepTraffic traffic = random_traffic(random, blocks);
    const LinkLoad load(job.packed_scenario(), traffic, job.packed());
    const NodeSites sites(load.cluster());
    ASSERT_TRUE(sites.alike);
    const FoundPlacement found = search_from(load, sites, job.free(), {.seed = 3, .moves = 3000});
    expect_placement(found.nodes, job);
    const LinkTimes least = least_of_all(load, job.free(), blocks);
    EXPECT_NEAR(found.load.slowest, least.slowest, 1e-9 * least.slowest);
    EXPECT_NEAR(found.load.spread, least.spread, 1e-9 * least.spread);
    EXPECT_FALSE(is_less(load.load(), found.load));
  }
}

TEST(PlacementSearch, StartsArePlacements) {
  const PlaceFolder folder;
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    std::vector<std::uint32_t> all(16);
    for (std::uint32_t node = 0; node < 16; ++node) all[node] = node;
    std::ranges::shuffle(all, random);
    std::string list;
    for (std::uint32_t node = 0; node < 8 + random() % 9; ++node) list += (node == 0 ? "" : ",") + std::to_string(all[node]);
    const PlacedJob job(folder.scenario(), {}, list);
    const StepTraffic traffic = traffic_of_step(job.packed_scenario());
    const LinkLoad load(job.packed_scenario(), traffic, job.packed());
    const NodeSites sites(load.cluster());
    const NodeOfBlock split = bisected(job.free(), 8, sites, traffic, 2);
    expect_placement(split, job);
    expect_placement(sorted_by_leaf(job.free(), 8, sites), job);
    expect_placement(in_order(split, job.free(), sites), job);
    // The same leaves, so the same load.
    LinkLoad other = load;
    other.place(split);
    const LinkTimes before = other.load();
    other.place(in_order(split, job.free(), sites));
    EXPECT_NEAR(other.load().slowest, before.slowest, 1e-12 * before.slowest);
    EXPECT_NEAR(other.load().spread, before.spread, 1e-12 * before.spread);
  }
}

// Two rings of two blocks each, and two leaves of two nodes: each ring to a leaf of its own.
TEST(PlacementSearch, BisectionKeepsWhatExchangesMostBelowOneLeaf) {
  const PlaceFolder folder;
  const PlacedJob job(folder.scenario(), {"parallelism.pp=1", "parallelism.dp=4"}, "0-3");
  StepTraffic traffic{{{Slot::data, {0, 4}, {9e9}}, {Slot::data, {2, 6}, {9e9}}, {Slot::data, {0, 2, 4, 6}, {1e9}}}};
  const LinkLoad load(job.packed_scenario(), traffic, job.packed());
  const NodeSites sites(load.cluster());
  const NodeOfBlock nodes = bisected(job.free(), 4, sites, traffic, 2);
  EXPECT_EQ(sites.leaf[nodes[0]], sites.leaf[nodes[2]]);
  EXPECT_EQ(sites.leaf[nodes[1]], sites.leaf[nodes[3]]);
  EXPECT_NE(sites.leaf[nodes[0]], sites.leaf[nodes[1]]);
}

TEST(NodeSites, FollowLeavesAndPods) {
  const PlaceFolder folder;
  const PlacedJob job(folder.scenario(), {}, "");
  const NodeSites sites{Cluster(job.packed_scenario().cluster)};
  EXPECT_EQ(sites.leaf, (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}));
  EXPECT_EQ(sites.pod, (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_TRUE(sites.same(2, 3));
  EXPECT_FALSE(sites.same(1, 2));
}

}  // namespace
}  // namespace tandem::studies::place_search_test
