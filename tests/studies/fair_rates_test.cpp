// Max-min fair rates of a few flows, worked out by hand.

#include "studies/step/fair_rates.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tandem::studies::fair_rates_test {
namespace {

/// Links of 12 and 30, and communicators that cross them.
World world_of(const std::vector<std::vector<Crossing>>& crossings) {
  World world;
  for (const double capacity : {12.0, 30.0}) world.links.push_back({.capacity = capacity});
  for (const std::vector<Crossing>& of_one : crossings) {
    Communicator communicator;
    communicator.layout.paths = {Paths{.crossings = of_one}};
    world.communicators.push_back(communicator);
  }
  return world;
}

using Rates = std::vector<BytesPerSecond>;

// 0 and 1 share the first link, 1 and 2 the second: two get 6 each, and the third what is left of 30.
TEST(FairRates, RiseTogetherUntilALinkIsFull) {
  const World world = world_of({{{0, 1}}, {{0, 1}, {1, 1}}, {{1, 1}}});
  EXPECT_EQ(fair_rates({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}, world), (Rates{6, 6, 24}));
}

// A rate x takes twice that of a link that is crossed twice: 2 x + x = 12.
TEST(FairRates, CountHowOftenALinkIsCrossed) {
  const World world = world_of({{{0, 2}}, {{0, 1}}});
  EXPECT_EQ(fair_rates({{0, 0, 0}, {1, 0, 0}}, world), (Rates{4, 4}));
}

TEST(FairRates, LeaveWhatALimitedFlowDoesNotTake) {
  const World world = world_of({{{0, 1}}, {{0, 1}}});
  EXPECT_EQ(fair_rates({{0, 0, 2}, {1, 0, 0}}, world), (Rates{2, 10}));
}

// The same twice is two flows. Over no link there is no limit.
TEST(FairRates, OfEqualFlowsAndOfNone) {
  const World world = world_of({{{1, 1}}, {}});
  EXPECT_EQ(fair_rates({{0, 0, 0}, {0, 0, 0}, {1, 0, 0}}, world), (Rates{15, 15, std::numeric_limits<double>::infinity()}));
}

}  // namespace
}  // namespace tandem::studies::fair_rates_test
