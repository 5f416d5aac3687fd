#include "sim/collective_cost.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/runtime/small_dag.h"

namespace tandem::sim::collective_cost_test {
namespace {

// NCCL's formulas (src/graph/tuning.cc) with its hop latencies of the Simple protocol: 3.4 us over NVLink, 14 us over the
// network.
constexpr Seconds base = 8.4e-6, nvlink = 3.4e-6, net = 14e-6;

Layout over(std::uint32_t nodes, std::uint32_t channels = 1) {
  return {.nodes = nodes, .intra_latency = nvlink, .inter_latency = net, .paths = {{.channels = channels}}};
}

TEST(CollectiveCost, AllReduceMovesTwiceWhatAllGatherMoves) {
  EXPECT_EQ(collective_cost(OpKind::all_reduce, 8'000, 8, over(1)).bytes_per_channel, 14'000);
  EXPECT_EQ(collective_cost(OpKind::all_gather, 8'000, 8, over(1)).bytes_per_channel, 7'000);
  EXPECT_EQ(collective_cost(OpKind::reduce_scatter, 8'000, 8, over(1)).bytes_per_channel, 7'000);
  EXPECT_EQ(collective_cost(OpKind::send, 8'000, 2, over(1)).bytes_per_channel, 8'000);
}

TEST(CollectiveCost, AllToAllSendsAllButOnesOwnPartAtOnce) {
  const CollectiveCost cost = collective_cost(OpKind::all_to_all, 8'000, 8, over(1));
  EXPECT_EQ(cost.bytes_per_channel, 7'000);
  EXPECT_DOUBLE_EQ(cost.latency, nvlink);
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::all_to_all, 8'000, 8, over(2)).latency, net);
}

TEST(CollectiveCost, ChannelsShareTheVolumeRoundedUp) {
  EXPECT_EQ(collective_cost(OpKind::all_gather, 8'000, 8, over(1, 8)).bytes_per_channel, 875);
  EXPECT_EQ(collective_cost(OpKind::all_gather, 8'001, 8, over(1, 8)).bytes_per_channel, 876);  // 7000.875 / 8 = 875.1
  EXPECT_EQ(collective_cost(OpKind::send, 9, 2, over(1, 4)).bytes_per_channel, 3);
}

TEST(CollectiveCost, LargestStepsDoNotOverflow) {
  // 2^43 bytes over 2^17 ranks on one channel: 2 (n-1)/n 2^43 = 2^44 - 2^27.
  EXPECT_EQ(collective_cost(OpKind::all_reduce, Bytes{1} << 43, 1U << 17, over(1U << 14)).bytes_per_channel,
            (Bytes{1} << 44) - (Bytes{1} << 27));
}

TEST(CollectiveCost, RingLatencyCountsStepsBetweenNodesApart) {
  // 32 ranks in 4 nodes: the longest way of 31 steps leaves out one inside a node.
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::all_gather, 1, 32, over(4)).latency, base + 27 * nvlink + 4 * net);
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::reduce_scatter, 1, 8, over(1)).latency, base + 7 * nvlink);
}

TEST(CollectiveCost, AllReduceTakesTheTreeAcrossNodes) {
  // Up and down: a chain of 8 in each node, log2(16) levels over the nodes.
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::all_reduce, 1, 128, over(16)).latency, base + 2 * (7 * nvlink + 4 * net));
  // In one node the tree is the chain, and no shorter than the ring: 14 steps either way.
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::all_reduce, 1, 8, over(1)).latency, base + 14 * nvlink);
}

TEST(CollectiveCost, TransferTakesOneHop) {
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::send, 1, 2, over(1)).latency, nvlink);
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::receive, 1, 2, over(2)).latency, net);
}

TEST(CollectiveCost, BroadcastAndReduceAreChains) {
  for (const OpKind op : {OpKind::broadcast, OpKind::reduce}) {
    EXPECT_EQ(collective_cost(op, 8'000, 8, over(1)).bytes_per_channel, 8'000);
    EXPECT_EQ(collective_cost(op, 8'000, 32, over(4, 8)).bytes_per_channel, 1'000);
    EXPECT_DOUBLE_EQ(collective_cost(op, 1, 32, over(4)).latency, base + 27 * nvlink + 4 * net);
  }
}

TEST(CollectiveCost, TheRootOfGatherAndScatterMovesAllButItsPart) {
  for (const OpKind op : {OpKind::gather, OpKind::scatter}) {
    EXPECT_EQ(collective_cost(op, 8'000, 8, over(1)).bytes_per_channel, 7'000);
    EXPECT_DOUBLE_EQ(collective_cost(op, 8'000, 8, over(1)).latency, nvlink);
  }
}

TEST(CollectiveCost, ABarrierIsAnAllReduceOfNothing) {
  for (const Architecture architecture : {Architecture::unknown, Architecture::hopper}) {
    const CollectiveCost barrier = collective_cost(OpKind::barrier, 0, 8, over(1), architecture);
    EXPECT_EQ(barrier.bytes_per_channel, 0);
    EXPECT_EQ(barrier.latency, collective_cost(OpKind::all_reduce, 0, 8, over(1), architecture).latency);
    EXPECT_GT(barrier.latency, 0);
  }
}

TEST(CollectiveCost, OneMemberIsFree) {
  const CollectiveCost alone = collective_cost(OpKind::all_reduce, 1'000, 1, over(1));
  EXPECT_EQ(alone.latency, 0);
  EXPECT_EQ(alone.bytes_per_channel, 0);
}

TEST(CollectiveCost, RefusesKernels) { EXPECT_THROW(collective_cost(OpKind::gemm, 1, 2, over(1)), std::logic_error); }

TEST(UncontendedTime, TheTightestLinkDecides) {
  const std::vector<Link> links{{.name = "slow", .capacity = 1e9}, {.name = "fast", .capacity = 4e9}};
  Layout layout = over(1);
  layout.paths.front().crossings = {{.link = 0, .multiplicity = 1}, {.link = 1, .multiplicity = 8}};
  EXPECT_DOUBLE_EQ(uncontended_time({.latency = 1e-6, .bytes_per_channel = 1'000'000}, layout, links), 1e-6 + 2e-3);
  EXPECT_DOUBLE_EQ(uncontended_time({.latency = 1e-6}, layout, links), 1e-6);
  const CollectiveCost limited{.latency = 1e-6, .bytes_per_channel = 1'000'000, .rate_limit = 1e8};
  EXPECT_DOUBLE_EQ(uncontended_time(limited, layout, links), 1e-6 + 1e-2);
}

TEST(CollectiveCosts, OfOneCommunicatorAreThoseOfTheirSizesHoweverManyDiffer) {
  SmallDag small;
  const CommunicatorId both = small.communicator(2, {.intra_latency = nvlink, .paths = {{.crossings = {{small.link(1e9), 1}}}}});
  const RankIndex rank = small.rank();
  constexpr std::uint32_t sizes = 7;
  for (std::int64_t size = 1; size <= sizes; ++size) small.all_reduce(rank, both, 1'000'000 * size);
  const Dag dag = small.finish();
  CollectiveCosts costs(dag);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint32_t other = i * i % sizes;  // 0, 1, 4, 2, 2, 4, 1: some soon again, some late
    EXPECT_EQ(costs.of(dag.tasks[i % sizes]).bytes_per_channel, Bytes{1'000'000} * (i % sizes + 1));
    EXPECT_EQ(&costs.of(dag.tasks[other]), &costs.of(dag.tasks[other]));
    EXPECT_EQ(costs.of(dag.tasks[other]).bytes_per_channel, Bytes{1'000'000} * (other + 1));
  }
}

}  // namespace
}  // namespace tandem::sim::collective_cost_test
