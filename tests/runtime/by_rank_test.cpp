#include "runtime/dag/by_rank.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tandem::by_rank_test {
namespace {

/// Tasks of these ranks.
Dag tasks_of(const std::vector<RankIndex>& ranks, std::size_t count) {
  Dag dag;
  dag.ranks.resize(count);
  for (const RankIndex rank : ranks) dag.tasks.push_back({.rank = rank});
  return dag;
}

/// Each rank has its tasks and no others, in order, and each task the place at which it comes.
void expect_all(const std::vector<RankIndex>& ranks, std::size_t count) {
  const Dag dag = tasks_of(ranks, count);
  const ByRank by_rank = ByRank::tasks(dag);
  for (RankIndex rank = 0; rank < count; ++rank) {
    std::vector<TaskId> expected, ids;
    for (TaskId id = 0; id < ranks.size(); ++id)
      if (ranks[id] == rank) expected.push_back(id);
    by_rank.for_each(rank, [&](TaskId id) {
      EXPECT_EQ(by_rank.place(rank, id), ids.size());
      EXPECT_EQ(by_rank.id(rank, ids.size()), id);
      ids.push_back(id);
    });
    EXPECT_EQ(ids, expected);
    EXPECT_EQ(by_rank.count(rank), expected.size());
  }
}

TEST(ByRank, HasRanksThatFollowEachOther) { expect_all({0, 0, 0, 1, 3, 3}, 5); }

TEST(ByRank, HasRanksThatTakeTurns) {
  std::mt19937 random(1);
  std::vector<RankIndex> ranks(200);
  for (RankIndex& rank : ranks) rank = std::uniform_int_distribution<RankIndex>(0, 6)(random);
  expect_all(ranks, 8);
}

}  // namespace
}  // namespace tandem::by_rank_test
