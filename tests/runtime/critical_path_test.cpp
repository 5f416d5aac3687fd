#include "runtime/analysis/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/executor.h"
#include "tests/runtime/fake_backend.h"
#include "tests/runtime/random_dag.h"

namespace tandem::critical_path_test {

void PrintTo(const PathSegment& segment, std::ostream* out) {
  *out << "task " << static_cast<std::int64_t>(segment.task) << " [" << segment.start << ", " << segment.end << "]";
}

namespace {

using testing::ElementsAre;
using testing::FieldsAre;

/// Kernels and collectives with the times they are told; dependencies are added by hand.
class HandMade {
 public:
  RankIndex rank() { return builder_.add_rank({.world_rank = ranks_++}); }
  TaskId kernel(RankIndex rank, Seconds start, Seconds end, Phase phase = Phase::forward) {
    const BufferId x = builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
    return ran(builder_.kernel(OpKind::fill, {}, {.name = "kernel", .phase = phase}, {}, {}, {{x}}), start, end);
  }
  /// One member on each of the ranks 0 and 1, each with times of its own.
  std::pair<TaskId, TaskId> all_reduce(Axis axis, Seconds start0, Seconds start1, Seconds end) {
    const CommunicatorId group = builder_.add_communicator({.name = "group", .axis = axis, .members = {0, 1}, .layout = {}});
    const auto member = [&](RankIndex rank, Seconds start) {
      const BufferId x = builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
      return ran(builder_.collective(OpKind::all_reduce, group, {.name = "reduce", .stream = Stream::tp}, x, x), start, end);
    };
    const TaskId first = member(0, start0);
    return {first, member(1, start1)};
  }
  void depend(TaskId before, TaskId after) { builder_.depend(before, after); }
  void walk() {
    dag = builder_.finish();
    path = critical_path(dag, timeline_);
  }

  Dag dag;
  std::vector<PathSegment> path;

 private:
  DagBuilder builder_;
  Timeline timeline_;
  std::uint32_t ranks_ = 0;

  TaskId ran(TaskId id, Seconds start, Seconds end) {
    timeline_.start.push_back(start);
    timeline_.end.push_back(end);
    return id;
  }
};

TEST(CriticalPath, GoesThroughTheRankThatACollectiveWaitedFor) {
  HandMade step;
  step.rank(), step.rank();
  const TaskId early = step.kernel(0, 0, 1);
  const TaskId late = step.kernel(1, 0, 3, Phase::backward_weight);
  const auto [member, other] = step.all_reduce(Axis::tp, 3, 3, 5);
  const TaskId last = step.kernel(0, 5, 6);
  step.kernel(1, 5, 5.5);
  step.depend(early, member);
  step.depend(late, other);
  step.depend(member, last);
  step.walk();
  EXPECT_THAT(step.path, ElementsAre(FieldsAre(late, 0, 0, 3), FieldsAre(member, 0, 3, 5), FieldsAre(last, 0, 5, 6)));
  EXPECT_THAT(sum_by_kind(step.dag, step.path),
              ElementsAre(FieldsAre("fill backward-weight", 3), FieldsAre("all_reduce (tp)", 2), FieldsAre("fill forward", 1)));
}

TEST(CriticalPath, TimeThatNoPredecessorExplainsIsAWait) {
  HandMade step;
  step.rank();
  const TaskId first = step.kernel(0, 0.5, 1);
  const TaskId second = step.kernel(0, 1.25, 3);
  const TaskId third = step.kernel(0, 3, 4);
  step.walk();
  EXPECT_THAT(step.path, ElementsAre(FieldsAre(no_id, 0, 0, 0.5), FieldsAre(first, 0, 0.5, 1), FieldsAre(no_id, 0, 1, 1.25),
                                     FieldsAre(second, 0, 1.25, 3), FieldsAre(third, 0, 3, 4)));
  EXPECT_THAT(sum_by_kind(step.dag, step.path), ElementsAre(FieldsAre("fill forward", 3.25), FieldsAre("wait", 0.75)));
}

TEST(CriticalPath, AMeasuredCollectiveThatWaitedInsideCountsFromWhenAllWereThere) {
  HandMade step;
  step.rank(), step.rank();
  const TaskId early = step.kernel(0, 0, 1);
  const TaskId late = step.kernel(1, 0, 3);
  const auto [member, other] = step.all_reduce(Axis::dp, 1, 3, 4);  // its kernel on rank 0 ran from 1 on
  step.depend(early, member);
  step.depend(late, other);
  step.walk();
  EXPECT_THAT(step.path, ElementsAre(FieldsAre(late, 0, 0, 3), FieldsAre(member, 0, 3, 4)));
}

TEST(CriticalPath, OfAnEmptyDagIsEmpty) { EXPECT_TRUE(critical_path(DagBuilder().finish(), {}).empty()); }

void expect_tiles(const std::vector<PathSegment>& path, Seconds makespan) {
  Seconds reached = 0;
  for (const PathSegment& segment : path) {
    EXPECT_EQ(segment.start, reached);
    EXPECT_GT(segment.end, segment.start);
    reached = segment.end;
  }
  EXPECT_EQ(reached, makespan);
}

/// The executor starts each task when its last predecessor ends, so that the path is a longest chain of the DAG.
TEST(CriticalPath, OfRandomDagsHasNoWaitsAndIsTheLongestChain) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Dag dag = random_dag(seed);
    const auto duration = [](TaskId id) { return 0.125 * (1 + (id * 2654435761U >> 16) % 32); };  // dyadic: sums are exact
    FakeBackend backend(duration);
    const Timeline timeline = execute(dag, backend);
    const std::vector<PathSegment> path = critical_path(dag, timeline);
    expect_tiles(path, timeline.makespan());
    for (const PathSegment& segment : path) {
      ASSERT_NE(segment.task, no_id) << "seed " << seed;
      EXPECT_EQ(segment.start, timeline.start[segment.task]) << "seed " << seed;
      EXPECT_EQ(segment.end, timeline.end[segment.task]) << "seed " << seed;
    }
    // Whatever is on the longest chain, made longer, makes the step longer by as much.
    const TaskId slow = dag.unit_of(path[seed % path.size()].task).front();
    FakeBackend slower([&](TaskId id) { return duration(id) + (id == slow ? 0.5 : 0); });
    EXPECT_EQ(execute(dag, slower).makespan(), timeline.makespan() + 0.5) << "seed " << seed;
    Seconds sum = 0;
    for (const PathKind& kind : sum_by_kind(dag, path)) sum += kind.time;
    EXPECT_EQ(sum, timeline.makespan()) << "seed " << seed;
  }
}

TEST(CriticalPath, TilesMeasuredTimelinesWithGapsAndJitter) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Dag dag = random_dag(seed);
    FakeBackend backend([](TaskId id) { return 0.125 * ((id * 2654435761U >> 16) % 32); });
    Timeline timeline = execute(dag, backend);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> jitter(-0.3, 0.3);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      timeline.start[id] = std::max(0.0, timeline.start[id] + jitter(random));
      timeline.end[id] = std::max(timeline.start[id], timeline.end[id] + jitter(random));
    }
    const std::vector<PathSegment> path = critical_path(dag, timeline);
    expect_tiles(path, timeline.makespan());
    Seconds sum = 0;
    for (const PathKind& kind : sum_by_kind(dag, path)) sum += kind.time;
    EXPECT_NEAR(sum, timeline.makespan(), 1e-9) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem::critical_path_test
