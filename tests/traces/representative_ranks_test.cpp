#include "traces/representative_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/sample.h"

namespace tandem::traces::representative_ranks_test {
namespace {

using testing::ElementsAre;

std::vector<RankIndex> chosen(const Sample& sample) {
  std::vector<RankIndex> ranks;
  for (const TracedRank& traced : representative_ranks(sample.dag, sample.timeline)) ranks.push_back(traced.rank);
  return ranks;
}

/// Kernels that take a microsecond each.
Sample even_sample(int stages, int replicas) {
  Sample sample = pipeline_sample(stages, replicas, 1);
  for (TaskId id = 0; id < sample.dag.tasks.size(); ++id) sample.timeline.end[id] = sample.timeline.start[id] + 1e-6;
  return sample;
}

void slow_down(Sample& sample, RankIndex rank, double factor) {
  for (TaskId id = 0; id < sample.dag.tasks.size(); ++id) {
    const Seconds duration = sample.timeline.duration(id);
    if (sample.dag.tasks[id].rank == rank) sample.timeline.end[id] = sample.timeline.start[id] + factor * duration;
  }
}

TEST(RepresentativeRanks, AreAllWhereTheyAreFew) {
  EXPECT_EQ(chosen(even_sample(2, 32)).size(), 64U);
  EXPECT_EQ(chosen(even_sample(2, 33)).size(), 2U);
}

TEST(RepresentativeRanks, OfManyAreThoseThatStandForMost) {
  Sample sample = even_sample(2, 40);
  EXPECT_THAT(chosen(sample), ElementsAre(0, 40));
  sample.dag.ranks[7].count = 3;
  sample.dag.ranks[9].count = 2;
  EXPECT_THAT(chosen(sample), ElementsAre(7, 40));
}

TEST(RepresentativeRanks, OfManyHaveTheSlowestWithThem) {
  Sample sample = even_sample(2, 40);
  slow_down(sample, 13, 1.5);
  slow_down(sample, 40, 1.5);
  slow_down(sample, 66, 1.505);  // less than 1 % longer
  EXPECT_THAT(chosen(sample), ElementsAre(0, 13, 40));
}

}  // namespace
}  // namespace tandem::traces::representative_ranks_test
