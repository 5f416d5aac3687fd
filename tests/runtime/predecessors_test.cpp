#include "runtime/analysis/predecessors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/edges.h"
#include "tests/runtime/random_dag.h"

namespace tandem::predecessors_test {
namespace {

using testing::ElementsAre;
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

}  // namespace
}  // namespace tandem::predecessors_test
