#include "runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/analysis/predecessors.h"
#include "tests/runtime/fake_backend.h"
#include "tests/runtime/random_dag.h"

namespace tandem::executor_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

/// Whole durations from 0 to 3, so that many units end at the same instant and some take no time.
Seconds whole_duration(TaskId id) { return static_cast<Seconds>((id * 2654435761U >> 16) % 4); }

struct RandomRun {
  Dag dag;
  FakeBackend backend{whole_duration};
  Timeline timeline;

  explicit RandomRun(std::uint32_t seed) : dag(random_dag(seed)), timeline(execute(dag, backend)) {}
};

constexpr std::uint32_t seeds = 30;

TEST(Executor, CountsWhatEnded) {
  const Dag dag = random_dag(1);
  FakeBackend backend{whole_duration};
  EndedTasks ended = 7;
  const Timeline timeline = execute(dag, backend, &ended);
  EXPECT_EQ(ended, dag.tasks.size());
}

TEST(Executor, StartsUnitsOnceAndWhole) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomRun run(seed);
    std::vector<int> starts(run.dag.tasks.size(), 0);
    for (const FakeBackend::Event& event : run.backend.log()) {
      if (event.kind != FakeBackend::Event::Kind::started) continue;
      EXPECT_THAT(event.unit, ElementsAreArray(run.dag.unit_of(event.unit.front())));
      for (const TaskId id : event.unit) ++starts[id];
    }
    EXPECT_THAT(starts, testing::Each(1));
  }
}

TEST(Executor, StartsNothingBeforeWhatItDependsOnEnded) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomRun run(seed);
    std::vector<bool> ended(run.dag.tasks.size(), false);
    const Predecessors predecessors(run.dag);
    for (const FakeBackend::Event& event : run.backend.log()) {
      for (const TaskId id : event.unit) {
        if (event.kind == FakeBackend::Event::Kind::ended) {
          ended[id] = true;
          continue;
        }
        for (const TaskId before : predecessors.of(id)) EXPECT_TRUE(ended[before]) << before << " -> " << id;
      }
    }
  }
}

TEST(Executor, StartsEachUnitAtOnceWhenItsLastMemberIsReady) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomRun run(seed);
    const Predecessors predecessors(run.dag);
    for (TaskId id = 0; id < run.dag.tasks.size(); ++id) {
      Seconds ready = 0;
      for (const TaskId member : run.dag.unit_of(id)) {
        for (const TaskId before : predecessors.of(member)) ready = std::max(ready, run.timeline.end[before]);
      }
      EXPECT_EQ(run.timeline.start[id], ready) << "task " << id;
      EXPECT_EQ(run.timeline.end[id], ready + whole_duration(run.dag.unit_of(id).front())) << "task " << id;
    }
  }
}

/// Kernels of one element each and all-reduces over {0, 1}, on one stream of a rank.
class TwoRanks {
 public:
  TwoRanks() {
    for (std::uint32_t r = 0; r < 2; ++r) builder_.add_rank({.world_rank = 10 + r});
  }
  CommunicatorId communicator() {
    return builder_.add_communicator({.name = "both", .axis = Axis::tp, .members = {10, 11}, .layout = {}});
  }
  TaskId kernel(RankIndex rank) {
    const std::array out{element(rank)};
    return builder_.kernel(OpKind::fill, {}, {.name = "fill"}, {}, out);
  }
  TaskId all_reduce(RankIndex rank, CommunicatorId communicator, std::string_view name) {
    const BufferId data = element(rank);
    return builder_.collective(OpKind::all_reduce, communicator, {.name = name}, data, data);
  }
  Dag finish() { return builder_.finish(); }

 private:
  DagBuilder builder_;
  BufferId element(RankIndex rank) { return builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(1)); }
};

TEST(Executor, MembersOfACollectiveStartTogetherWhenTheLastIsReady) {
  TwoRanks two;
  const CommunicatorId both = two.communicator();
  two.kernel(0);
  const TaskId fast = two.all_reduce(0, both, "reduce");
  two.kernel(1);
  const TaskId slow_kernel = two.kernel(1);
  const TaskId slow = two.all_reduce(1, both, "reduce");
  const TaskId after = two.kernel(0);
  const Dag dag = two.finish();
  FakeBackend backend([&](TaskId id) { return id == slow_kernel ? 7.0 : 1.0; });
  const Timeline timeline = execute(dag, backend);
  EXPECT_THAT((std::array{timeline.start[fast], timeline.start[slow]}), ElementsAre(8, 8));
  EXPECT_THAT((std::array{timeline.end[fast], timeline.end[slow]}), ElementsAre(9, 9));
  EXPECT_EQ(timeline.start[after], 9);
}

TEST(Executor, NamesTheTasksOfADeadlock) {
  // Rank 10 waits in A for rank 11, which waits in B for rank 10.
  TwoRanks two;
  const CommunicatorId a = two.communicator();
  const CommunicatorId b = two.communicator();
  two.all_reduce(0, a, "A");
  two.all_reduce(0, b, "B");
  two.all_reduce(1, b, "B");
  two.all_reduce(1, a, "A");
  const Dag dag = two.finish();
  FakeBackend backend([](TaskId) { return 1.0; });
  try {
    execute(dag, backend);
    FAIL() << "two ranks in two collectives in opposite orders finished";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("4 tasks"));
    EXPECT_THAT(error.what(), HasSubstr("A on rank 10"));
    EXPECT_THAT(error.what(), HasSubstr("B on rank 11"));
  }
}

TEST(Executor, AnEmptyDagTakesNoTime) {
  const Dag dag = DagBuilder().finish();
  FakeBackend backend([](TaskId) { return 1.0; });
  EXPECT_EQ(execute(dag, backend).makespan(), 0);
}

}  // namespace
}  // namespace tandem::executor_test
