// The load that a placement puts on links: by hand, against the simulator's own account, and moved bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "sim/link_use.h"
#include "sim/simulate.h"
#include "studies/place/link_load.h"
#include "tests/studies/place_job.h"

namespace tandem::studies::place_load_test {
namespace {

constexpr double bytes = 12e9;
constexpr double port = 400e9 / 8;  // of a NIC, whose efficiency this cluster leaves at 1

/// One rank to a node, four of them: nodes 0 and 1 below one leaf, 2 and 3 below the next, one uplink of a NIC's speed each.
const std::string four_nodes =
    "name: four\n"
    "model: {layers: 2, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}\n"
    "cluster: {name: four, gpus: 4, gpu: h100-sxm-80gb, gpus_per_node: 1, nvlink_GBps: 100, nics_per_node: 1, nic_gbps: 400,\n"
    "  nvlink_latency_us: 1, nic_latency_us: 10, switch_latency_us: 0.5,\n"
    "  fabric: {kind: fat-tree, tiers: 2, rail_optimized: false, leaf_ports: 2, pod_leaves: 2, oversubscription: [1, 2]}}\n"
    "parallelism: {dp: 4}\n"
    "training: {sequence: 1024, micro_batch: 1, global_batch: 4}\n";

StepTraffic one_ring(std::uint32_t ranks) {
  std::vector<std::uint32_t> members(ranks);
  std::iota(members.begin(), members.end(), 0U);
  return {{{Slot::data, members, {bytes}}}};
}

TEST(LinkLoad, OfARingIsOneCrossingForEachHopThatLeavesALeaf) {
  const PlaceFolder folder(four_nodes);
  const PlacedJob job(folder.scenario(), {}, "");
  const StepTraffic traffic = one_ring(4);
  LinkLoad load(job.packed_scenario(), traffic, {0, 1, 2, 3});
  // 0 -> 1 -> 2 -> 3 -> 0: eight times over a NIC (out and in), and 1 -> 2 and 3 -> 0 over both leaves' uplinks.
  const auto packed = load.by_tier();
  EXPECT_DOUBLE_EQ(packed[0].bytes, 8 * bytes);
  EXPECT_DOUBLE_EQ(packed[1].bytes, 4 * bytes);
  EXPECT_DOUBLE_EQ(packed[0].slowest, bytes / port);
  EXPECT_DOUBLE_EQ(packed[1].slowest, bytes / port);
  EXPECT_EQ(packed[2].links, 0);
  // Four NICs and two uplinks, two directions each, all equally busy.
  EXPECT_EQ(packed[0].links + packed[1].links, 12);
  EXPECT_DOUBLE_EQ(load.load().slowest, bytes / port);
  EXPECT_DOUBLE_EQ(load.load().spread, bytes / port);

  // 0 -> 2 -> 1 -> 3 -> 0 by nodes: every hop changes leaf, so that each uplink is crossed twice.
  load.place({0, 2, 1, 3});
  EXPECT_DOUBLE_EQ(load.by_tier()[0].bytes, 8 * bytes);
  EXPECT_DOUBLE_EQ(load.by_tier()[1].bytes, 8 * bytes);
  EXPECT_DOUBLE_EQ(load.load().slowest, 2 * bytes / port);
  EXPECT_DOUBLE_EQ(load.load().spread, bytes / port * std::sqrt((8 * 1 + 4 * 4) / 12.0));
}

// link_use adds up what the flows of a simulation carried, link by link, from a DAG lowered for just this placement.
TEST(LinkLoad, IsWhatASimulationOfThePlacementCarries) {
  const PlaceFolder folder;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"parallelism.zero=3"},
        {"parallelism.pp=1", "parallelism.cp=2"},
        {"model.moe={experts: 8, top_k: 2, ffn: 512}", "parallelism.ep=4", "parallelism.pp=1", "parallelism.dp=8"},
        {"cluster.fabric.kind=dragonfly+", "cluster.fabric.oversubscription=[1,2,2]"},
        {"cluster.fabric.routing=ecmp"}}) {
    SCOPED_TRACE(more.empty() ? "as it is" : more.front());
    const PlacedJob job(folder.scenario(), more, "1,3,4,6,8,9,12,15");
    const StepTraffic traffic = traffic_of_step(job.packed_scenario());
    const NodeOfBlock nodes{9, 1, 15, 4, 3, 12, 8, 6};
    const LinkLoad load(job.packed_scenario(), traffic, nodes);
    const Scenario placed = job.scenario(nodes);
    const Dag dag = lower(placed, make_world(placed, false));
    const LinkUse use = link_use(dag, simulate(dag).timeline, 1);

    std::map<std::string, double> expected;
    for (LinkId id = 0; id < dag.links.size(); ++id) {
      if (dag.links[id].tier != Tier::nvlink) expected[dag.links[id].name] = use.links[id].bytes;
    }
    double all = 0;
    std::size_t used = 0;
    for (LinkId id = 0; id < load.cluster().link_count(); ++id) {
      const double carried = load.bytes_over(id);
      if (carried == 0) continue;
      const std::string name = load.cluster().link(id).name;
      ASSERT_TRUE(expected.contains(name)) << name;
      EXPECT_NEAR(carried, expected.at(name), 1e-9 * expected.at(name) + 1) << name;
      all += carried;
      ++used;
    }
    EXPECT_GT(used, 16U);
    double all_expected = 0;
    for (const auto& [name, carried] : expected) all_expected += carried;
    EXPECT_NEAR(all, all_expected, 1e-9 * all_expected);
  }
}

TEST(LinkLoad, MovedIsAsPlacedAnewAndTakenBackAsBefore) {
  const PlaceFolder folder;
  const PlacedJob job(folder.scenario(), {}, "");
  const StepTraffic traffic = traffic_of_step(job.packed_scenario());
  LinkLoad load(job.packed_scenario(), traffic, job.packed());
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const LinkTimes before = load.load();
    const NodeOfBlock nodes = load.nodes();
    const std::uint32_t block = random() % 8, node = random() % 16;
    std::vector<LinkLoad::Move> moves{{block, node}};
    const auto there = std::ranges::find(nodes, node);
    if (there != nodes.end()) moves.emplace_back(there - nodes.begin(), nodes[block]);
    load.move(moves);
    const LinkLoad anew(job.packed_scenario(), traffic, load.nodes());
    EXPECT_NEAR(load.load().slowest, anew.load().slowest, 1e-12 * anew.load().slowest);
    EXPECT_NEAR(load.load().spread, anew.load().spread, 1e-12 * anew.load().spread);
    if (i % 2 == 0) continue;
    load.take_back();
    EXPECT_EQ(load.load(), before);
    EXPECT_EQ(load.nodes(), nodes);
  }
}

}  // namespace
}  // namespace tandem::studies::place_load_test
