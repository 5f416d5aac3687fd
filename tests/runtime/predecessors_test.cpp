#include "runtime/analysis/predecessors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/analysis/awaited.h"
#include "tests/runtime/edges.h"
#include "tests/runtime/random_dag.h"

namespace tandem::predecessors_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

TEST(Predecessors, OfADiamond) {
  DagBuilder builder;
  const RankIndex rank = builder.add_rank({});
  const BufferId x = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(2));
  const auto kernel = [&](Stream stream, std::int64_t element) {
    const std::array out{builder.view(x, element, Shape(1))};
    return builder.kernel(OpKind::fill, {}, {.name = "k", .stream = stream}, {}, out);
  };
  const TaskId top = kernel(Stream::compute, 0);
  const TaskId left = kernel(Stream::tp, 0);
  const TaskId right = kernel(Stream::compute, 1);
  const TaskId bottom = kernel(Stream::dp, 1);
  builder.depend(left, bottom);
  const Dag dag = builder.finish();
  const Predecessors predecessors(dag);
  EXPECT_THAT(predecessors.of(top), IsEmpty());
  EXPECT_THAT(predecessors.of(left), ElementsAre(top));
  EXPECT_THAT(predecessors.of(right), ElementsAre(top));
  EXPECT_THAT(predecessors.of(bottom), testing::UnorderedElementsAre(left, right));
}

TEST(Predecessors, AreTheEdgesTurnedRound) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Dag dag = random_dag(seed);
    std::vector<std::vector<TaskId>> expected(dag.tasks.size());
    for (const auto& [before, after] : edges_of(dag)) expected[after].push_back(before);
    const Predecessors predecessors(dag);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      EXPECT_THAT(predecessors.of(id), UnorderedElementsAreArray(expected[id])) << "task " << id << ", seed " << seed;
    }
  }
}

TEST(Predecessors, OfAnEmptyDag) { EXPECT_NO_THROW(Predecessors(DagBuilder().finish())); }

TEST(Predecessors, OfThoseAskedForAreTheSameOnes) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Dag dag = random_dag(seed);
    const Predecessors all(dag);
    const auto is_even = [](TaskId id) { return id % 2 == 0; };
    const auto is_near = [](TaskId before, TaskId after) { return after - before < 4; };
    const Predecessors some(dag, is_even, is_near);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      std::vector<TaskId> expected;
      for (const TaskId before : all.of(id))
        if (is_even(before) && is_near(before, id)) expected.push_back(before);
      EXPECT_THAT(some.of(id), ElementsAreArray(expected));
    }
  }
}

TEST(Predecessors, ThatMayBeExposedCommunicateOrRunOnTheHostOfTheSameRank) {
  std::size_t found = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Dag dag = random_dag(seed);
    const Predecessors all(dag), awaited = awaited_by(dag);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      std::vector<TaskId> expected;
      for (const TaskId before : all.of(id)) {
        const Task task = dag.tasks[before];
        if (task.rank == dag.tasks[id].rank && (is_communication(task.op) || task.stream == Stream::host))
          expected.push_back(before);
      }
      EXPECT_THAT(awaited.of(id), ElementsAreArray(expected));
      found += expected.size();
    }
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace tandem::predecessors_test
