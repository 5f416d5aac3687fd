#include "scenarios/mesh/communicator_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::communicator_rows_test {
namespace {

using Overrides = std::vector<std::string>;

Scenario base(const Overrides& overrides = {}) { return parse_scenario(base_text(), "base", overrides); }

std::vector<CommunicatorRow> rows_of(const std::vector<CommunicatorRow>& rows, const std::string& family) {
  std::vector<CommunicatorRow> found;
  std::ranges::copy_if(rows, std::back_inserter(found), [&](const CommunicatorRow& row) { return row.family == family; });
  return found;
}

std::int64_t communicators(const std::vector<CommunicatorRow>& rows) {
  std::int64_t sum = 0;
  for (const CommunicatorRow& row : rows) sum += row.communicators;
  return sum;
}

std::uint32_t links(const CommunicatorRow& row, Tier tier) {
  const auto& span = row.links[static_cast<std::size_t>(tier)];
  EXPECT_EQ(span.least, span.most);
  return span.most;
}

/// tp 8 fills a node; two nodes below a leaf, two leaves below a pod, 1:4 above it; dp 8 is 8 nodes, and so is a stage.
Overrides two_level() {
  return {"cluster.gpus=128",
          "parallelism.tp=8",
          "parallelism.dp=8",
          "parallelism.zero=1",
          "model.kv_heads=8",
          "cluster.fabric.rail_optimized=false",
          "cluster.fabric.leaf_ports=16",
          "cluster.fabric.pod_leaves=2",
          "cluster.fabric.oversubscription=[1, 1, 4]"};
}

// By hand. tp: the node's 8 GPUs, a port out and in of each. dp: 8 of equal place, over 8 nodes; a ring leaves and enters each of
// its 4 leaves and 2 pods once. All 8 rings of a stage leave a pod together, on 32 NICs' worth of cables over 4: 8 of 48 GB/s,
// one for each, so that nothing is in their way. Pairs between stages lie 8 nodes apart: always over the core, all 64 out of 2
// pods.
TEST(CommunicatorRows, NumbersByHand) {
  const std::vector<CommunicatorRow> rows = communicator_rows(base(two_level()));
  ASSERT_EQ(rows_of(rows, "tp").size(), 1U);
  const CommunicatorRow tp = rows_of(rows, "tp").front();
  EXPECT_EQ(tp.axis, Axis::tp);
  EXPECT_EQ(tp.communicators, 16);
  EXPECT_EQ(tp.ranks, 8U);
  EXPECT_EQ(tp.nodes, 1U);
  EXPECT_EQ(tp.reach, Reach::node);
  EXPECT_EQ(links(tp, Tier::nvlink), 16U);
  EXPECT_EQ(links(tp, Tier::nic), 0U);
  EXPECT_DOUBLE_EQ(tp.alone->least, 450e9 * 0.81);
  EXPECT_DOUBLE_EQ(tp.together->most, 450e9 * 0.81);
  EXPECT_DOUBLE_EQ(tp.hop.most, 3.4e-6);

  ASSERT_EQ(rows_of(rows, "dp").size(), 1U);
  const CommunicatorRow dp = rows_of(rows, "dp").front();
  EXPECT_EQ(dp.communicators, 16);
  EXPECT_EQ(dp.nodes, 8U);
  EXPECT_EQ(dp.reach, Reach::core);
  EXPECT_EQ(links(dp, Tier::nic), 16U);
  EXPECT_EQ(links(dp, Tier::leaf), 8U);
  EXPECT_EQ(links(dp, Tier::spine), 4U);
  EXPECT_DOUBLE_EQ(dp.alone->least, 48e9);
  EXPECT_DOUBLE_EQ(dp.together->least, 48e9);
  EXPECT_DOUBLE_EQ(dp.hop.most, 13.87e-6 + 5 * 0.13e-6);  // leaf, spine, core, spine, leaf

  const std::vector<CommunicatorRow> forward = rows_of(rows, "pp forward");
  ASSERT_EQ(forward.size(), 1U);
  EXPECT_EQ(forward.front().communicators, 64);
  EXPECT_EQ(forward.front().reach, Reach::core);
  EXPECT_DOUBLE_EQ(forward.front().alone->least, 48e9);
  EXPECT_DOUBLE_EQ(forward.front().together->least, 48e9 / 4);  // a pod's 32 NICs on 8 cables

  const CommunicatorRow norm = rows_of(rows, "gradient norm").front();
  EXPECT_EQ(norm.ranks, 128U);
  EXPECT_EQ(norm.reach, Reach::core);
  EXPECT_FALSE(norm.alone.has_value());
}

// 24,576 GPUs of the Llama 3 cluster: tp inside the node; ranks of equal place in it, over all 8 pods, for dp.
TEST(CommunicatorRows, Llama3OnItsCluster) {
  const Scenario scenario = parse_scenario(
      "model: llama3-405b\ncluster: {preset: llama3-24k-roce, gpus: 24576}\nparallelism: {tp: 8, sp: true, pp: 16, order: [tp, "
      "cp, "
      "ep, pp, dp], account_for_embedding: true, account_for_loss: true}\ntraining: {sequence: 8192, global_batch: 1536}\n",
      "s", {});
  const std::vector<CommunicatorRow> rows = communicator_rows(scenario);
  const CommunicatorRow tp = rows_of(rows, "tp").front(), dp = rows_of(rows, "dp").front();
  EXPECT_EQ(tp.communicators, 3072);
  EXPECT_EQ(tp.reach, Reach::node);
  EXPECT_EQ(dp.communicators, 128);
  EXPECT_EQ(dp.ranks, 192U);
  EXPECT_EQ(dp.nodes, 192U);
  EXPECT_EQ(dp.reach, Reach::core);
  EXPECT_EQ(links(dp, Tier::spine), 2U * 8);
  // pp is 16 nodes in a row: a stage and the next share a rack or are in neighbouring ones, of one pod (3,072 GPUs are 24
  // pipelines).
  const std::vector<CommunicatorRow> forward = rows_of(rows, "pp forward");
  ASSERT_EQ(forward.size(), 2U);
  EXPECT_EQ(forward[0].reach, Reach::leaf);
  EXPECT_EQ(forward[0].communicators, 24'576 / 16 * 8);  // even stages to odd ones
  EXPECT_EQ(forward[1].reach, Reach::pod);
  EXPECT_EQ(forward[1].communicators, 24'576 / 16 * 7);
}

class RowsOfMeshes : public testing::TestWithParam<Overrides> {};

TEST_P(RowsOfMeshes, FoldedEqualsUnfolded) {
  const Scenario scenario = base(GetParam());
  EXPECT_EQ(communicator_rows(scenario, true), communicator_rows(scenario, false));
}

// The unfolded world has every communicator once. The rows agree with it in number, size and nodes, by family.
TEST_P(RowsOfMeshes, CountTheCommunicatorsOfTheUnfoldedWorld) {
  const Scenario scenario = base(GetParam());
  const World world = make_world(scenario, false);
  using Key = std::tuple<std::string, std::uint32_t, std::uint32_t>;
  std::map<Key, std::int64_t> in_rows, counted;
  for (const CommunicatorRow& row : communicator_rows(scenario)) in_rows[{row.family, row.ranks, row.nodes}] += row.communicators;
  for (const Communicator& c : world.communicators)
    ++counted[{c.name, static_cast<std::uint32_t>(c.members.size()), c.layout.nodes}];
  EXPECT_EQ(in_rows, counted);
}

TEST_P(RowsOfMeshes, GroupsCoverEveryRankOnce) {
  const Scenario scenario = base(GetParam());
  const std::vector<CommunicatorRow> rows = communicator_rows(scenario);
  for (const std::string family : {"tp", "dp", "cp", "ep", "etp", "expert dp"}) {
    const std::vector<CommunicatorRow> of_family = rows_of(rows, family);
    if (of_family.empty()) continue;
    std::int64_t ranks = 0;
    for (const CommunicatorRow& row : of_family) ranks += row.communicators * row.ranks;
    EXPECT_EQ(ranks, scenario.cluster.gpus) << family;
  }
  const ParallelismSpec& p = scenario.parallelism;
  if (p.pp > 1 && p.vpp == 1) {
    EXPECT_EQ(communicators(rows_of(rows, "pp forward")), scenario.cluster.gpus / p.pp * (p.pp - 1));
  }
}

TEST_P(RowsOfMeshes, ReachAsFarAsTheFarthestOfEachAxis) {
  const Scenario scenario = base(GetParam());
  std::map<Axis, Reach> farthest;
  for (const CommunicatorRow& row : communicator_rows(scenario)) {
    Reach& reach = farthest[row.axis];
    reach = std::max(reach, row.reach);
  }
  EXPECT_EQ(farthest_reaches(scenario), farthest);
}

TEST_P(RowsOfMeshes, TogetherIsNeverFasterThanAlone) {
  for (const CommunicatorRow& row : communicator_rows(base(GetParam()))) {
    if (!row.alone) continue;
    EXPECT_GT(row.together->least, 0) << row.family;
    EXPECT_LE(row.together->least, row.alone->least * (1 + 1e-12)) << row.family;
    EXPECT_LE(row.together->most, row.alone->most * (1 + 1e-12)) << row.family;
  }
}

// Each flow is on one cable, and so may collide with others.
TEST(CommunicatorRows, HashedFlowsLieOnCables) {
  Scenario scenario = base(two_level());
  scenario.cluster.fabric.routing = FlowRouting::ecmp;
  const std::vector<CommunicatorRow> spread = communicator_rows(base(two_level())), hashed = communicator_rows(scenario);
  const CommunicatorRow dp = rows_of(hashed, "dp").front();
  EXPECT_EQ(communicators(rows_of(hashed, "dp")), 16);
  EXPECT_EQ(links(dp, Tier::leaf), 8U);
  EXPECT_LT(dp.together->least, rows_of(spread, "dp").front().together->least);
}

const std::string experts = "model.moe={experts: 8, top_k: 2, ffn: 256}";
INSTANTIATE_TEST_SUITE_P(
    CommunicatorRows, RowsOfMeshes,
    testing::Values(Overrides{}, Overrides{"parallelism.zero=0"}, Overrides{"parallelism.pp=1", "parallelism.dp=8"}, two_level(),
                    Overrides{"parallelism.pp=4", "parallelism.vpp=2", "parallelism.dp=2", "training.schedule=interleaved-1f1b"},
                    Overrides{"parallelism.order=[tp, pp, cp, ep, dp]"}, Overrides{"parallelism.order=[dp, tp, cp, ep, pp]"},
                    Overrides{"parallelism.cp=2", "parallelism.dp=2"},
                    Overrides{"parallelism.cp=2", "parallelism.dp=2", "parallelism.cp_method=ulysses", "model.kv_heads=8"},
                    Overrides{experts, "parallelism.ep=4"}, Overrides{experts, "parallelism.ep=4", "parallelism.etp=2"},
                    Overrides{"parallelism.tp=2", "parallelism.dp=8", "cluster.fabric.leaf_ports=3"},
                    Overrides{"cluster.gpus=24", "cluster.fabric.rail_optimized=false", "parallelism.tp=2", "parallelism.pp=4",
                              "parallelism.dp=3", "training.global_batch=12"},
                    Overrides{"cluster.nics_per_node=2"}, Overrides{"cluster.nics_per_node=16"}));

}  // namespace
}  // namespace tandem::scenarios::communicator_rows_test
