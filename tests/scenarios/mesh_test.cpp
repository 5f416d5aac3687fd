#include "scenarios/mesh/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tandem::scenarios::mesh_test {
namespace {

using testing::ElementsAre;
using enum Axis;

ParallelismSpec sizes(std::vector<Axis> order) {
  ParallelismSpec parallelism{.tp = 2, .pp = 3, .cp = 4, .dp = 5};
  parallelism.order = std::move(order);
  return parallelism;
}

TEST(Mesh, CountsInnermostAxisFirst) {
  const Mesh mesh(sizes({tp, cp, ep, dp, pp}));
  EXPECT_EQ(mesh.size(), 2 * 3 * 4 * 5);
  for (std::int32_t p = 0; p < 3; ++p) {
    for (std::int32_t d = 0; d < 5; ++d) {
      for (std::int32_t c = 0; c < 4; ++c) {
        for (std::int32_t t = 0; t < 2; ++t) {
          const auto rank = static_cast<std::uint32_t>(t + 2 * (c + 4 * (d + 5 * p)));
          EXPECT_EQ(mesh.coordinates(rank).at, (std::array<std::int32_t, mesh_axis_count>{t, c, 0, d, p}));
        }
      }
    }
  }
}

TEST(Mesh, ExpertRanksLieInsideTheDataParallelOnes) {
  ParallelismSpec parallelism{.cp = 2, .ep = 4, .dp = 4};
  EXPECT_EQ(Mesh(parallelism).size(), 8);
  EXPECT_EQ(Mesh(parallelism).extent(ep), 1);
}

TEST(Mesh, MembersOfSmallGroups) {
  const Mesh mesh({.tp = 2, .pp = 2, .dp = 3});  // rank = tp + 2 dp + 6 pp
  EXPECT_THAT(mesh.members(9, {tp}), ElementsAre(8, 9));
  EXPECT_THAT(mesh.members(9, {dp}), ElementsAre(7, 9, 11));
  EXPECT_THAT(mesh.members(9, {pp}), ElementsAre(3, 9));
  EXPECT_THAT(mesh.members(9, {pp, tp}), ElementsAre(2, 3, 8, 9));
  EXPECT_THAT(mesh.members(9, {}), ElementsAre(9));
}

TEST(Mesh, CoordinatesAndRankAreInverseInEveryOrder) {
  std::vector<Axis> order{tp, cp, ep, dp, pp};
  do {
    const Mesh mesh(sizes(order));
    for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
      const Coordinates place = mesh.coordinates(rank);
      ASSERT_EQ(mesh.rank(place), rank);
      for (const Axis axis : order) {
        ASSERT_GE(place[axis], 0);
        ASSERT_LT(place[axis], mesh.extent(axis));
      }
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST(Mesh, MembersPartitionTheWorldInEveryOrder) {
  const std::vector<std::vector<Axis>> groups{{tp}, {cp, dp}, {dp, cp}, {pp}, {tp, pp}, {tp, cp, dp, pp}};
  std::vector<Axis> order{tp, cp, ep, dp, pp};
  do {
    const Mesh mesh(sizes(order));
    for (const std::vector<Axis>& axes : groups) {
      std::size_t size = 1;
      for (const Axis axis : axes) size *= static_cast<std::size_t>(mesh.extent(axis));
      std::set<std::vector<std::uint32_t>> all;
      for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
        const std::vector<std::uint32_t> members = mesh.members(rank, axes);
        ASSERT_EQ(members.size(), size);
        ASSERT_TRUE(std::ranges::is_sorted(members));
        ASSERT_TRUE(std::ranges::binary_search(members, rank));
        all.insert(members);
      }
      // Groups that hold all ranks and together have no more places than ranks do not overlap.
      ASSERT_EQ(all.size() * size, static_cast<std::size_t>(mesh.size()));
    }
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace tandem::scenarios::mesh_test
