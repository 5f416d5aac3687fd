#include "runtime/dag/nonbinding_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace tandem::nonbinding_links_test {
namespace {

using testing::ElementsAre;

/// Four NICs of speed 1 below a link up (0), over which each sends to the NIC (5) of another leaf.
std::vector<PathUse> four_nics_below_a_leaf() {
  std::vector<PathUse> uses;
  for (std::uint32_t nic = 0; nic < 4; ++nic) {
    for (const LinkId link : {LinkId{0}, LinkId{1} + nic, LinkId{5}}) uses.push_back({nic, link, 1});
  }
  return uses;
}

TEST(NonbindingLinks, AreAsFastAsAllBelowThem) {
  EXPECT_THAT(nonbinding_links({4, 1, 1, 1, 1, 9}, four_nics_below_a_leaf()),
              ElementsAre(true, false, false, false, false, true));
  EXPECT_THAT(nonbinding_links({3.9, 1, 1, 1, 1, 9}, four_nics_below_a_leaf()),
              ElementsAre(false, false, false, false, false, true));
}

TEST(NonbindingLinks, AreAsFastAsWhatFollowsOnThem) {
  EXPECT_THAT(nonbinding_links({2, 1, 1, 1, 1, 1.5}, four_nics_below_a_leaf()),
              ElementsAre(true, false, false, false, false, false));
}

// A ring over both leaves leaves each once, whichever NICs it has below.
TEST(NonbindingLinks, CarryARingAsOftenAsItCrossesThem) {
  const std::vector<PathUse> ring{{0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, 4, 1}};
  EXPECT_THAT(nonbinding_links({1.5, 1, 1, 1, 1}, ring), ElementsAre(true, false, false, false, false));
  std::vector<PathUse> twice = ring;
  twice.push_back({0, 0, 1});
  EXPECT_FALSE(nonbinding_links({1.5, 1, 1, 1, 1}, twice).front());
  EXPECT_TRUE(nonbinding_links({2, 1, 1, 1, 1}, twice).front());
}

TEST(NonbindingLinks, AreNoneOfThoseThatNothingSlowerPrecedes) {
  EXPECT_THAT(nonbinding_links({1, 1}, {{0, 0, 1}, {0, 1, 1}}), ElementsAre(false, false));
  EXPECT_THAT(nonbinding_links({1, 2}, {{0, 1, 3}}), ElementsAre(false, false));
  EXPECT_THAT(nonbinding_links({1, 2}, {{0, 1, 0}}), ElementsAre(false, false)) << "nothing crosses them";
}

struct Network {
  std::vector<BytesPerSecond> capacities;
  std::vector<PathUse> uses;
};

/// Paths over NICs, leaves and a spine, some of them over one of each and some rings over many.
Network random_network(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t leaves = 1 + below(4), nics = 1 + below(4);
  Network network{.capacities = std::vector<BytesPerSecond>(leaves * nics, 1), .uses = {}};
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) network.capacities.push_back(0.5 + below(2 * nics + 1));
  network.capacities.push_back(1 + below(2 * leaves * nics));
  for (std::uint32_t path = 0; path < 1 + below(12); ++path) {
    std::map<LinkId, std::uint32_t> times;
    for (std::uint32_t hop = below(4) == 0 ? 6 : 1; hop > 0; --hop) {
      const std::uint32_t nic = below(leaves * nics), often = 1 + below(2);
      times[nic] += often;
      if (below(4) == 0) continue;
      times[leaves * nics + nic / nics] += often;
      if (below(2) == 0) times[leaves * nics + leaves] += often;
    }
    for (const auto& [link, often] : times) network.uses.push_back({path, link, often});
  }
  return network;
}

/// The max-min fair rates of so many flows on each path over the links that `counts` names: all rates rise together, and those
/// stop that come to a full link.
std::vector<double> fair_rates(const Network& network, const std::vector<std::uint32_t>& flows, const std::vector<bool>& counts) {
  std::vector<double> rate(flows.size(), 0);
  std::vector<bool> rises(flows.size());
  for (std::size_t path = 0; path < flows.size(); ++path) rises[path] = flows[path] > 0;
  while (std::ranges::find(rises, true) != rises.end()) {
    std::vector<double> left = network.capacities, slope(left.size(), 0);
    for (const PathUse& use : network.uses) {
      left[use.link] -= use.times * rate[use.path] * flows[use.path];
      if (rises[use.path]) slope[use.link] += static_cast<double>(use.times) * flows[use.path];
    }
    double step = std::numeric_limits<double>::infinity();
    for (LinkId link = 0; link < left.size(); ++link)
      if (counts[link] && slope[link] > 0) step = std::min(step, left[link] / slope[link]);
    EXPECT_LT(step, std::numeric_limits<double>::infinity()) << "a flow that nothing holds back";
    if (!(step < std::numeric_limits<double>::infinity())) break;
    for (std::size_t path = 0; path < flows.size(); ++path)
      if (rises[path]) rate[path] += step;
    for (const PathUse& use : network.uses)
      if (counts[use.link] && slope[use.link] > 0 && left[use.link] - step * slope[use.link] < 1e-12) rises[use.path] = false;
  }
  return rate;
}

TEST(NonbindingLinks, ChangeNoFairRate) {
  std::mt19937 random(20261127);
  int found = 0;
  for (int i = 0; i < 2'000; ++i) {
    const Network network = random_network(random);
    const std::vector<bool> nonbinding = nonbinding_links(network.capacities, network.uses);
    std::vector<bool> binding = nonbinding;
    binding.flip();
    found += static_cast<int>(std::ranges::count(nonbinding, true));
    for (int draw = 0; draw < 3; ++draw) {
      std::vector<std::uint32_t> flows(network.uses.back().path + 1);
      for (std::uint32_t& of_path : flows) of_path = static_cast<std::uint32_t>(random() % 3);
      const std::vector<double> all = fair_rates(network, flows, std::vector<bool>(nonbinding.size(), true));
      const std::vector<double> without = fair_rates(network, flows, binding);
      for (std::size_t path = 0; path < flows.size(); ++path) EXPECT_NEAR(all[path], without[path], 1e-11) << i;
    }
  }
  EXPECT_GT(found, 500);
}

}  // namespace
}  // namespace tandem::nonbinding_links_test
