#include <gtest/gtest.h>

#include "sim/collective_cost.h"

namespace tandem::sim::deepep_test {
namespace {

TEST(DeepEpCost, IsHeldToAShareOfEachLink) {
  // Nodes of two with one NIC each; 4 channels' bytes on a port, 1 on a NIC.
  Layout layout{.nodes = 2, .inter_latency = 14e-6};
  layout.paths = {{.algorithm = Algorithm::deepep, .channels = 3, .bandwidth = 30e9, .in_node = 40e9, .between_nodes = 30e9}};
  const CollectiveCost cost = collective_cost(OpKind::all_to_all, 4'000'000, 4, layout, Architecture::hopper);
  EXPECT_EQ(cost.bytes_per_channel, 1'000'000);  // 3/4 of 4 MB leave, over 3 channels
  EXPECT_DOUBLE_EQ(cost.rate_limit, 0.91 * 30e9);
  layout.paths.front().in_node = 32e9;
  EXPECT_DOUBLE_EQ(collective_cost(OpKind::all_to_all, 4'000'000, 4, layout, Architecture::hopper).rate_limit, 0.77 * 32e9);
  EXPECT_DOUBLE_EQ(cost.latency, 14e-6);
}

TEST(HybridEpCost, HasSharesOfItsOwn) {
  Layout layout{.nodes = 1, .intra_latency = 3e-6};
  layout.paths = {{.algorithm = Algorithm::hybridep, .channels = 3, .bandwidth = 40e9, .in_node = 40e9}};
  const CollectiveCost cost = collective_cost(OpKind::all_to_all, 4'000'000, 4, layout, Architecture::blackwell);
  EXPECT_EQ(cost.bytes_per_channel, 1'000'000);
  EXPECT_DOUBLE_EQ(cost.rate_limit, 0.94 * 40e9);
}

// Each of four writes its quarter to three others, over 3 channels to each: as much as in an all-to-all of the same bytes.
TEST(HybridEpCost, OfWhatItGathersInANodeIsThatOfMessagesToAllOthers) {
  Layout layout{.nodes = 1, .intra_latency = 3e-6};
  layout.paths = {{.algorithm = Algorithm::direct, .channels = 3, .bandwidth = 40e9, .in_node = 40e9, .slowest = 40e9}};
  const CollectiveCost gather = collective_cost(OpKind::all_gather, 4'000'000, 4, layout, Architecture::blackwell);
  const CollectiveCost exchange = collective_cost(OpKind::all_to_all, 4'000'000, 4, layout, Architecture::blackwell);
  EXPECT_EQ(gather.bytes_per_channel, 1'000'000);
  EXPECT_EQ(gather.bytes_per_channel, exchange.bytes_per_channel);
  EXPECT_DOUBLE_EQ(gather.latency, 3e-6);
}

}  // namespace
}  // namespace tandem::sim::deepep_test
