#include "sim/node_ring.h"

#include <gtest/gtest.h>

namespace tandem::sim::node_ring_test {
namespace {

constexpr double rounding = 1e-12;

// Hops of two kinds, none of which shares anything: the longest chain stays with the slower hop or goes round.
TEST(NodeRing, OfTwoTakesItsLongestChain) {
  const NodeRing ring{
      .hops = 2, .messages = 6, .over_nodes = 3, .alone = 1, .least = 1, .intra_latency = 0.5, .inter_latency = 2};
  // The first message stays, as the hop between nodes is slower than its neighbour; then it goes round, to end between nodes.
  EXPECT_NEAR(play_node_ring(ring), 3 + 3 * (3 + 2) + 2 * (1 + 0.5), rounding);
  NodeRing quick = ring;
  quick.intra_latency = quick.inter_latency = 0.1;
  EXPECT_NEAR(play_node_ring(quick), 6 * 3 + 0.1, rounding);
}

// Three messages share the port at first, which nothing holds up for long afterwards: they take 3, 2 and 1 of what one takes.
TEST(NodeRing, MessagesInsideANodeShareItsPort) {
  const NodeRing ring{.hops = 4, .messages = 3, .over_nodes = 100, .alone = 1, .least = 1};
  // From the second hop on: all three at once until 3, the last two of the next step until 5, the last one until 6. The first
  // hop's third message leaves at 300.
  EXPECT_NEAR(play_node_ring(ring), 300, rounding);
  NodeRing longest = ring;
  longest.messages = 4;
  longest.over_nodes = 10;
  EXPECT_NEAR(play_node_ring(longest), 40, rounding);
}

TEST(NodeRing, PortsThatAreTooSlowHoldUpTheRest) {
  // Three hops of a node share its port all the time: each message takes 3, far longer than over the nodes.
  const NodeRing ring{.hops = 4, .messages = 40, .over_nodes = 0.5, .alone = 1, .least = 1};
  EXPECT_NEAR(play_node_ring(ring), 40 * 3, 40 * 3 * 0.05);
}

// What is not played follows from the rounds that were. A message meets others inside its node now and then.
TEST(NodeRing, LongRingsGoOnAsTheyBegan) {
  NodeRing ring{
      .hops = 8, .messages = 16, .over_nodes = 2.6, .alone = 0.29, .least = 0.29, .intra_latency = 3.4, .inter_latency = 14.2};
  const Seconds round = 8 * ((7 * (3.4 + 0.29) + 14.2 + 2.6) / 8);
  Seconds before = play_node_ring(ring);
  for (std::uint32_t rounds = 3; rounds < 100; ++rounds) {
    ring.messages = 8 * rounds;
    const Seconds now = play_node_ring(ring);
    EXPECT_GE(now - before, round * (1 - rounding)) << rounds;
    EXPECT_LE(now - before, round * 1.03) << rounds;
    before = now;
  }
}

}  // namespace
}  // namespace tandem::sim::node_ring_test
