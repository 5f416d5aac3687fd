#include "runtime/analysis/overlap.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"

namespace tandem::overlap_test {
namespace {

TEST(StreamOverlap, IsWhatBothDoAtOnce) {
  SmallDag small;
  const RankIndex rank = small.rank(), other = small.rank();
  const CommunicatorId both = small.communicator(2, {});
  small.kernel(rank, 1);
  small.kernel(rank, 1);
  small.all_reduce(rank, both, 4);
  small.all_reduce(rank, both, 4);
  small.kernel(other, 1);
  small.all_reduce(other, both, 4);
  small.all_reduce(other, both, 4);
  const Dag dag = small.finish();
  // rank: computes in [0, 4] and [6, 8], communicates in [2, 7] and [9, 10]; other: computes in [0, 10], communicates in the same
  const Timeline timeline{{0, 6, 2, 9, 0, 2, 9}, {4, 8, 7, 10, 10, 7, 10}};
  const std::vector<StreamOverlap> overlaps = stream_overlaps(dag, timeline);
  ASSERT_EQ(overlaps.size(), 2U);
  EXPECT_EQ(overlaps[0].rank, rank);
  EXPECT_EQ(overlaps[0].stream, Stream::dp);
  EXPECT_DOUBLE_EQ(overlaps[0].busy, 6);
  EXPECT_DOUBLE_EQ(overlaps[0].covered, 3);
  EXPECT_DOUBLE_EQ(overlaps[0].fraction(), 0.5);
  EXPECT_DOUBLE_EQ(overlaps[1].fraction(), 1);
}

// The same step. Rank: of 6 busy seconds 3 are covered; other: 6 of 6. On its second axis the rank is busy in [3, 9.5], 3 of them
// covered; on either of the two in [2, 10], 4 of them covered.
TEST(CommunicationOverlap, IsTheMeanOverRanksByAxisAndInAll) {
  SmallDag small;
  const RankIndex rank = small.rank(), other = small.rank();
  const CommunicatorId both = small.communicator(2, {}), alone = small.communicator(1, {});
  small.kernel(rank, 1);
  small.kernel(rank, 1);
  small.all_reduce(rank, both, 4);
  small.all_reduce(rank, both, 4);
  small.all_reduce(rank, alone, 4, Stream::tp);
  small.kernel(other, 1);
  small.all_reduce(other, both, 4);
  small.all_reduce(other, both, 4);
  Dag dag = small.finish();
  Task other_axis = dag.tasks[4];
  other_axis.axis = Axis::tp;
  dag.tasks.set(4, other_axis);
  const Timeline timeline{{0, 6, 2, 9, 3, 0, 2, 9}, {4, 8, 7, 10, 9.5, 10, 7, 10}};
  const CommunicationOverlap overlap = communication_overlap(dag, timeline);
  EXPECT_DOUBLE_EQ(overlap.on(Axis::dp).busy, 6);
  EXPECT_DOUBLE_EQ(overlap.on(Axis::dp).covered, (3 + 6) / 2.0);
  EXPECT_DOUBLE_EQ(overlap.on(Axis::tp).busy, 6.5 / 2);
  EXPECT_DOUBLE_EQ(overlap.on(Axis::tp).covered, 3 / 2.0);
  EXPECT_DOUBLE_EQ(overlap.on(Axis::tp).hidden(), 3 / 6.5);
  EXPECT_DOUBLE_EQ(overlap.all.busy, (8 + 6) / 2.0);
  EXPECT_DOUBLE_EQ(overlap.all.covered, (4 + 6) / 2.0);
  EXPECT_EQ(overlap.on(Axis::ep).busy, 0);
  // One rank stands for three.
  dag.ranks[rank].count = 3;
  EXPECT_DOUBLE_EQ(communication_overlap(dag, timeline).on(Axis::dp).covered, (3 * 3 + 6) / 4.0);
}

TEST(StreamOverlap, OfAStreamThatTakesNoTimeIsNothing) {
  SmallDag small;
  small.all_reduce(small.rank(), small.communicator(1, {}), 4);
  const std::vector<StreamOverlap> overlaps = stream_overlaps(small.finish(), {{1}, {1}});
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_EQ(overlaps[0].fraction(), 0);
}

TEST(StreamOverlap, EqualsCountingInstants) {
  // Random tasks that begin and end at whole numbers, so that [i, i + 1] is busy as a whole or not at all.
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Dag dag = random_dag(seed);
    std::mt19937 random(seed);
    Timeline timeline;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      timeline.start.push_back(static_cast<double>(random() % 100));
      timeline.end.push_back(timeline.start.back() + static_cast<double>(random() % 5));
    }
    for (const StreamOverlap& overlap : stream_overlaps(dag, timeline)) {
      const auto runs = [&](int instant, Stream stream, bool communication) {
        for (TaskId id = 0; id < dag.tasks.size(); ++id) {
          const Task& task = dag.tasks[id];
          if (task.rank == overlap.rank && task.stream == stream && is_communication(task.op) == communication &&
              timeline.start[id] <= instant && timeline.end[id] >= instant + 1)
            return true;
        }
        return false;
      };
      int busy = 0, covered = 0;
      for (int instant = 0; instant < 105; ++instant) {
        if (!runs(instant, overlap.stream, true)) continue;
        ++busy;
        covered += runs(instant, Stream::compute, false) ? 1 : 0;
      }
      EXPECT_DOUBLE_EQ(overlap.busy, busy);
      EXPECT_DOUBLE_EQ(overlap.covered, covered);
    }
  }
}

}  // namespace
}  // namespace tandem::overlap_test
