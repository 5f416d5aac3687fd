#include "topology/folding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>

namespace tandem::topology::folding_test {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t absent = FoldInput::absent;

/// `ranks` alike and `communicators` alike, with nothing between them yet.
FoldInput alike(std::size_t ranks, std::size_t communicators, std::size_t links = 0) {
  FoldInput input;
  input.rank_colours.assign(ranks, 0);
  input.communicator_colours.assign(communicators, 0);
  input.members_per_rank.assign(communicators, 1);
  input.link_colours.assign(links, 0);
  return input;
}

TEST(Folding, EqualPairsFoldToOneRank) {
  FoldInput input = alike(6, 3);
  input.slots = {{0, 0, 1, 1, 2, 2}};
  const Partition partition = fold(input);
  EXPECT_THAT(partition.ranks.of, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(partition.ranks.representative, ElementsAre(0));
  EXPECT_THAT(partition.ranks.size, ElementsAre(6));
  EXPECT_THAT(partition.communicators.size, ElementsAre(3));
}

TEST(Folding, AnOddRankSplitsItsNeighboursAlone) {
  FoldInput input = alike(6, 3);
  input.slots = {{0, 0, 1, 1, 2, 2}};
  input.rank_colours[3] = 1;
  const Partition partition = fold(input);
  EXPECT_THAT(partition.ranks.of, ElementsAre(0, 0, 1, 2, 0, 0));
  EXPECT_THAT(partition.communicators.of, ElementsAre(0, 1, 0));
}

// On a 3 x 3 mesh with rows and columns, an odd corner leaves four kinds: itself, its row, its column, and the rest.
TEST(Folding, AnOddRankOfAMeshTellsRowFromColumn) {
  FoldInput input = alike(9, 6);
  input.slots = {{0, 0, 0, 1, 1, 1, 2, 2, 2}, {3, 4, 5, 3, 4, 5, 3, 4, 5}};
  EXPECT_EQ(fold(input).ranks.count(), 1);
  input.rank_colours[0] = 1;
  EXPECT_THAT(fold(input).ranks.of, ElementsAre(0, 1, 1, 2, 3, 3, 2, 3, 3));
}

/// With few bits, hashes of what differs are often the same: equality decides all the same.
TEST(Folding, CollidingHashesFoldAsOthersDo) {
  FoldInput input = alike(9, 6, 3);
  input.slots = {{0, 0, 0, 1, 1, 1, 2, 2, 2}, {3, 4, 5, 3, 4, 5, 3, 4, 5}};
  input.crossings = {{0, 0, 2, 1}, {1, 1, 2, 1}, {2, 2, 3, 1}};
  for (const std::uint32_t odd : {0U, 4U, 8U}) {
    FoldInput with_odd = input;
    with_odd.rank_colours[odd] = 1;
    const Partition right = fold(with_odd);
    EXPECT_TRUE(is_equitable(with_odd, right));
    for (const int bits : {0, 1, 2, 3}) {
      const Partition partition = fold(with_odd, {.bits = bits});
      EXPECT_EQ(partition.ranks.of, right.ranks.of) << bits;
      EXPECT_EQ(partition.communicators.of, right.communicators.of) << bits;
      EXPECT_EQ(partition.links.of, right.links.of) << bits;
    }
  }
}

/// Paths beyond the 2^24 that a crossing may name collide under every hash.
TEST(Folding, GivesUpOnHashesThatAllCollide) {
  FoldInput input = alike(2, 2, 2);
  input.slots = {{0, 1}};
  input.crossings = {{0, 0, 1, 1, 0}, {1, 1, 1, 1, 1U << 24}};
  EXPECT_THROW(fold(input), std::logic_error);
}

/// Each of the counts that a partition must keep apart, merged by hand.
TEST(Folding, WhatDiffersInOneCountIsNotEquitable) {
  const auto whole = [](const FoldInput& input) {
    const auto one = [](std::size_t count) {
      return Classes{
          .of = std::vector<std::uint32_t>(count, 0), .representative = {0}, .size = {static_cast<std::uint32_t>(count)}};
    };
    return Partition{one(input.rank_colours.size()), one(input.communicator_colours.size()), one(input.link_colours.size())};
  };
  FoldInput even = alike(4, 2, 2);
  even.slots = {{0, 0, 1, 1}};
  even.crossings = {{0, 0, 1, 1}, {1, 1, 1, 1}};
  EXPECT_TRUE(is_equitable(even, whole(even)));
  for (const auto& change : std::vector<std::function<void(FoldInput&)>>{
           [](FoldInput& input) { input.rank_colours[1] = 7; }, [](FoldInput& input) { input.communicator_colours[1] = 7; },
           [](FoldInput& input) { input.link_colours[1] = 7; }, [](FoldInput& input) { input.slots[0][3] = absent; },
           [](FoldInput& input) { input.members_per_rank[1] = 2; },
           [](FoldInput& input) { input.crossings[1].of_communicator = 2; },
           [](FoldInput& input) { input.crossings[1].of_link = 2; }, [](FoldInput& input) { input.crossings[1].path = 1; },
           [](FoldInput& input) { input.crossings.pop_back(); }}) {
    FoldInput changed = even;
    change(changed);
    EXPECT_FALSE(is_equitable(changed, whole(changed)));
  }
}

// Each rank sends to the next one of a cycle; an odd one makes every distance from it a class of its own.
TEST(Folding, DistanceAlongACycleTells) {
  FoldInput input = alike(5, 5);
  input.slots = {{0, 1, 2, 3, 4}, {4, 0, 1, 2, 3}};  // rank r sends on r, receives on r - 1
  EXPECT_EQ(fold(input).ranks.count(), 1);
  input.rank_colours[2] = 1;
  EXPECT_EQ(fold(input).ranks.count(), 5);
}

TEST(Folding, SlotsAreRolesNotNames) {
  // 0 -> 1 and 2 -> 3: senders are alike, receivers are alike, and neither are both.
  FoldInput input = alike(4, 2);
  input.slots = {{0, absent, 1, absent}, {absent, 0, absent, 1}};
  EXPECT_THAT(fold(input).ranks.of, ElementsAre(0, 1, 0, 1));
}

TEST(Folding, SizesOfGroupsTell) {
  FoldInput input = alike(5, 2);
  input.slots = {{0, 0, 1, 1, 1}};
  EXPECT_THAT(fold(input).ranks.of, ElementsAre(0, 0, 1, 1, 1));
}

TEST(Folding, ABusyLinkSplitsWhoCrossesIt) {
  // Three communicators of one rank each; two of them meet on link 0.
  FoldInput input = alike(3, 3, 2);
  input.slots = {{0, 1, 2}};
  input.crossings = {{0, 0, 1, 1}, {1, 0, 1, 1}, {2, 1, 1, 1}};
  const Partition partition = fold(input);
  EXPECT_THAT(partition.ranks.of, ElementsAre(0, 0, 1));
  EXPECT_THAT(partition.links.of, ElementsAre(0, 1));
}

// Links that hold nobody back are told apart by who crosses them, and tell nobody apart.
TEST(Folding, ALinkThatDoesNotBindSplitsNobody) {
  FoldInput input = alike(3, 3, 2);
  input.slots = {{0, 1, 2}};
  input.crossings = {{0, 0, 1, 1}, {1, 0, 1, 1}, {2, 1, 1, 1}};
  input.nonbinding = {true, true};
  const Partition partition = fold(input);
  EXPECT_THAT(partition.ranks.of, ElementsAre(0, 0, 0));
  EXPECT_THAT(partition.communicators.of, ElementsAre(0, 0, 0));
  EXPECT_THAT(partition.links.of, ElementsAre(0, 1));
  EXPECT_TRUE(is_equitable(input, partition));
  input.nonbinding.clear();
  EXPECT_FALSE(is_equitable(input, partition));
  input.nonbinding = {true, false};
  EXPECT_EQ(fold(input).ranks.count(), 2);
}

TEST(Folding, MultiplicitiesAddUp) {
  FoldInput input = alike(2, 2, 2);
  input.slots = {{0, 1}};
  input.crossings = {{0, 0, 2, 2}, {1, 1, 1, 1}, {1, 1, 1, 1}};
  EXPECT_EQ(fold(input).ranks.count(), 1);
  input.crossings.push_back({1, 1, 1, 1});
  EXPECT_EQ(fold(input).ranks.count(), 2);
}

// Elements that are merged beforehand: what counts is how many of the other kind each single one meets.
TEST(Folding, MergedRanksCountAsOftenAsACommunicatorHasThem) {
  FoldInput input = alike(3, 3);
  input.slots = {{0, 1, 2}};
  input.members_per_rank = {4, 4, 2};
  EXPECT_THAT(fold(input).ranks.of, ElementsAre(0, 0, 1));
}

TEST(Folding, MergedCrossingsCountForEachSide) {
  FoldInput input = alike(0, 2, 2);
  input.crossings = {{0, 0, 2, 1}, {1, 1, 2, 1}};
  EXPECT_EQ(fold(input).links.count(), 1);
  input.crossings = {{0, 0, 2, 1}, {1, 1, 2, 3}};
  EXPECT_EQ(fold(input).links.count(), 2);
  input.crossings = {{0, 0, 2, 1}, {1, 1, 4, 1}};
  EXPECT_EQ(fold(input).communicators.count(), 2);
}

TEST(Folding, ThousandsOfColoursStayApartAndAreFoundAgain) {
  FoldInput input = alike(10'000, 0);
  for (std::uint32_t rank = 0; rank < 10'000; ++rank) input.rank_colours[rank] = 7 + rank % 5'000;
  const Partition partition = fold(input);
  ASSERT_EQ(partition.ranks.count(), 5'000);
  for (std::uint32_t rank = 0; rank < 10'000; ++rank) ASSERT_EQ(partition.ranks.of[rank], rank % 5'000);
}

TEST(Folding, UnfoldedHasEverythingInAClassOfItsOwn) {
  const Partition partition = unfolded(alike(3, 2, 1));
  EXPECT_THAT(partition.ranks.of, ElementsAre(0, 1, 2));
  EXPECT_THAT(partition.ranks.size, ElementsAre(1, 1, 1));
  EXPECT_THAT(partition.communicators.representative, ElementsAre(0, 1));
  EXPECT_EQ(partition.links.count(), 1);
}

/// What every element meets, by class, in full: the condition of an equitable partition is that it is the same within a class.
using Meetings = std::map<std::vector<std::uint64_t>, std::uint64_t>;
struct View {
  std::vector<Meetings> ranks, communicators, links;
};

View view_of(const FoldInput& input, const Partition& classes) {
  View view{std::vector<Meetings>(input.rank_colours.size()), std::vector<Meetings>(input.communicator_colours.size()),
            std::vector<Meetings>(input.link_colours.size())};
  for (std::size_t slot = 0; slot < input.slots.size(); ++slot) {
    for (std::size_t rank = 0; rank < input.slots[slot].size(); ++rank) {
      const std::uint32_t communicator = input.slots[slot][rank];
      if (communicator == absent) continue;
      ++view.ranks[rank][{slot, classes.communicators.of[communicator]}];
      view.communicators[communicator][{0, slot, classes.ranks.of[rank]}] += input.members_per_rank[communicator];
    }
  }
  for (const FoldInput::Crossing& crossing : input.crossings) {
    view.communicators[crossing.communicator][{1, classes.links.of[crossing.link]}] += crossing.of_communicator;
    view.links[crossing.link][{classes.communicators.of[crossing.communicator]}] += crossing.of_link;
  }
  return view;
}

void expect_equal_views(const Classes& classes, const std::vector<Meetings>& views, const std::vector<std::uint64_t>& colours) {
  for (std::size_t i = 0; i < classes.of.size(); ++i) {
    const std::uint32_t representative = classes.representative[classes.of[i]];
    EXPECT_LE(representative, i);
    EXPECT_EQ(views[i], views[representative]);
    EXPECT_EQ(colours[i], colours[representative]);
  }
  EXPECT_EQ(std::accumulate(classes.size.begin(), classes.size.end(), std::size_t{0}), classes.of.size());
}

/// Classes numbered by first appearance of (old class, view).
Classes split(const Classes& old, const std::vector<Meetings>& views) {
  Classes now;
  std::map<std::pair<std::uint32_t, Meetings>, std::uint32_t> numbers;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto [entry, added] = numbers.try_emplace({old.of[i], views[i]}, static_cast<std::uint32_t>(numbers.size()));
    now.of.push_back(entry->second);
    if (added) now.representative.push_back(static_cast<std::uint32_t>(i));
  }
  return now;
}

Classes by_colour(const std::vector<std::uint64_t>& colours) {
  std::vector<Meetings> views;
  for (const std::uint64_t colour : colours) views.push_back({{{colour}, 1}});
  return split({.of = std::vector<std::uint32_t>(colours.size(), 0), .representative = {}, .size = {}}, views);
}

/// Colour refinement written as its definition, without hashes. It yields the coarsest equitable partition (Cardon & Crochemore
/// 1982).
Partition refine_by_definition(const FoldInput& input) {
  Partition now{by_colour(input.rank_colours), by_colour(input.communicator_colours), by_colour(input.link_colours)};
  for (;;) {
    const View view = view_of(input, now);
    Partition next{split(now.ranks, view.ranks), split(now.communicators, view.communicators), split(now.links, view.links)};
    if (next.ranks.of == now.ranks.of && next.communicators.of == now.communicators.of && next.links.of == now.links.of)
      return now;
    now = std::move(next);
  }
}

/// Groups of equal size in each slot, by blocks or shuffled, over links that blocks or chance assign; a few elements stand out.
FoldInput random_input(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const std::size_t ranks = 4 * (1 + below(6));
  const std::size_t links = 1 + below(6);
  FoldInput input = alike(ranks, 0, links);
  for (std::size_t slot = 0; slot < 1 + below(3); ++slot) {
    std::vector<std::uint32_t> order(ranks);
    std::iota(order.begin(), order.end(), 0U);
    if (below(3) == 0) std::ranges::shuffle(order, random);
    const std::size_t group = 1 + below(4);
    const std::size_t stride = below(2) == 0 ? 1 : ranks / 4;
    std::vector<std::uint32_t>& of_rank = input.slots.emplace_back(ranks, absent);
    std::map<std::size_t, std::uint32_t> numbers;
    for (std::size_t i = 0; i < ranks; ++i) {
      const std::size_t block = stride == 1 ? i / group : i % stride;
      const auto [entry, added] = numbers.try_emplace(block, static_cast<std::uint32_t>(input.communicator_colours.size()));
      if (added) {
        input.communicator_colours.push_back(slot);
        input.members_per_rank.push_back(below(8) == 0 ? 2 : 1);
        for (std::size_t c = below(3); c > 0; --c) {
          const std::size_t link = below(2) == 0 ? block % links : below(links);
          const auto times = static_cast<std::uint32_t>(1 + below(2));
          input.crossings.push_back({entry->second, static_cast<std::uint32_t>(link), times, below(8) == 0 ? 3 : times});
        }
      }
      of_rank[order[i]] = entry->second;
    }
  }
  if (below(2) == 0) input.rank_colours[below(ranks)] = 1;
  if (below(3) == 0) input.link_colours[below(links)] = 1;
  return input;
}

TEST(Folding, OfRandomInputsIsEquitable) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const FoldInput input = random_input(seed);
    const Partition partition = fold(input);
    const View view = view_of(input, partition);
    expect_equal_views(partition.ranks, view.ranks, input.rank_colours);
    expect_equal_views(partition.communicators, view.communicators, input.communicator_colours);
    expect_equal_views(partition.links, view.links, input.link_colours);
  }
}

TEST(Folding, OfRandomInputsIsTheCoarsest) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const FoldInput input = random_input(seed);
    const Partition partition = fold(input);
    const Partition expected = refine_by_definition(input);
    EXPECT_EQ(partition.ranks.of, expected.ranks.of);
    EXPECT_EQ(partition.communicators.of, expected.communicators.of);
    EXPECT_EQ(partition.links.of, expected.links.of);
  }
}

}  // namespace
}  // namespace tandem::topology::folding_test
