#include "runtime/cuda/split_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace tandem::split_rounds_test {
namespace {

/// What ncclCommSplit makes of the ranks' colours and keys: a communicator per colour, its ranks in the order of the keys.
std::map<int, std::vector<std::uint32_t>> split(const Dag& dag, const SplitRound& round) {
  std::map<int, std::vector<std::pair<int, std::uint32_t>>> by_colour;
  for (const Rank& rank : dag.ranks) {
    const SplitPlace place = place_in(dag, round, rank.world_rank);
    EXPECT_EQ(place.colour < 0, place.communicator == no_id);
    if (place.colour >= 0) by_colour[place.colour].emplace_back(place.key, rank.world_rank);
  }
  std::map<int, std::vector<std::uint32_t>> communicators;
  for (auto& [colour, ranks] : by_colour) {
    std::ranges::sort(ranks);
    for (const auto& [key, rank] : ranks) communicators[colour].push_back(rank);
  }
  return communicators;
}

/// Every communicator is made in exactly one round, of its members in their order, together with none that it shares a rank with.
void expect_all_made(const Dag& dag) {
  std::vector<int> made(dag.communicators.size(), 0);
  for (const SplitRound& round : split_rounds(dag)) {
    const auto communicators = split(dag, round);
    EXPECT_EQ(communicators.size(), round.communicators.size());
    for (std::size_t colour = 0; colour < round.communicators.size(); ++colour) {
      const CommunicatorId id = round.communicators[colour];
      ++made[id];
      EXPECT_EQ(communicators.at(static_cast<int>(colour)), dag.communicators[id].members);
    }
  }
  EXPECT_TRUE(std::ranges::all_of(made, [](int times) { return times == 1; }));
}

Dag world_of(std::uint32_t ranks) {
  Dag dag;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) dag.ranks.push_back({.world_rank = rank});
  return dag;
}

void add(Dag& dag, const std::string& name, Axis axis, const std::vector<std::uint32_t>& members) {
  dag.communicators.push_back({.name = name, .axis = axis, .members = members, .layout = {}});
}

TEST(SplitRounds, GroupsOfOneAxisAreOneRound) {
  Dag dag = world_of(16);  // tp 4, dp 4
  for (std::uint32_t group = 0; group < 4; ++group) {
    add(dag, "tp", Axis::tp, {4 * group, 4 * group + 1, 4 * group + 2, 4 * group + 3});
    add(dag, "dp", Axis::dp, {group, group + 4, group + 8, group + 12});
  }
  EXPECT_EQ(split_rounds(dag).size(), 2U);
  expect_all_made(dag);
}

TEST(SplitRounds, NeighboursOfAPipelineTakeTwoAndOfAnOddRingThree) {
  for (std::uint32_t stages = 3; stages < 10; ++stages) {
    Dag chain = world_of(stages);
    for (std::uint32_t stage = 0; stage + 1 < stages; ++stage) add(chain, "pp", Axis::pp, {stage, stage + 1});
    EXPECT_EQ(split_rounds(chain).size(), 2U);
    expect_all_made(chain);
    Dag ring = chain;
    add(ring, "pp", Axis::pp, {stages - 1, 0});
    EXPECT_EQ(split_rounds(ring).size(), stages % 2 == 0 ? 2U : 3U);
    expect_all_made(ring);
  }
}

TEST(SplitRounds, UnlikeCommunicatorsAreNotMixed) {
  Dag dag = world_of(8);
  add(dag, "tp", Axis::tp, {0, 1});
  add(dag, "tp", Axis::tp, {2, 3, 4});
  add(dag, "cp", Axis::cp, {5, 6});
  add(dag, "tp", Axis::tp, {6, 5});
  const std::vector<SplitRound> rounds = split_rounds(dag);
  ASSERT_EQ(rounds.size(), 3U);
  EXPECT_EQ(rounds[0].communicators, (std::vector<CommunicatorId>{0, 3}));
  expect_all_made(dag);
}

TEST(SplitRounds, HoldForRandomCommunicators) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Dag dag = world_of(2 + random() % 30);
    for (int i = 0; i < 40; ++i) {
      std::vector<std::uint32_t> ranks;
      for (const Rank& rank : dag.ranks) ranks.push_back(rank.world_rank);
      std::ranges::shuffle(ranks, random);
      ranks.resize(1 + random() % ranks.size());
      add(dag, random() % 2 == 0 ? "a" : "b", random() % 2 == 0 ? Axis::tp : Axis::dp, ranks);
    }
    expect_all_made(dag);
  }
}

}  // namespace
}  // namespace tandem::split_rounds_test
