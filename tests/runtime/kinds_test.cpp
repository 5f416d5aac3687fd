#include "runtime/analysis/kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/executor.h"
#include "tests/runtime/fake_backend.h"
#include "tests/runtime/random_dag.h"

namespace tandem::kinds_test {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;

TEST(TimeByKind, CountsEachRankAsOftenAsItStandsForOthersAndEachStep) {
  DagBuilder builder;
  builder.dag().info.steps = 2;
  const RankIndex many = builder.add_rank({.count = 3});
  const RankIndex one = builder.add_rank({.count = 1});
  Timeline timeline;
  const auto ran = [&](Seconds start, Seconds end) {
    timeline.start.push_back(start);
    timeline.end.push_back(end);
  };
  const auto kernel = [&](RankIndex rank, OpKind op, Phase phase, Seconds start, Seconds end) {
    const BufferId x = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
    builder.kernel(op, {}, {.name = "kernel", .phase = phase}, {}, {}, {{x}});
    ran(start, end);
  };
  const auto all_reduce = [&](RankIndex rank, Axis axis, Seconds start, Seconds end) {
    const CommunicatorId group = builder.add_communicator({.name = "group", .axis = axis, .members = {0, 1}, .layout = {}});
    const BufferId x = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1));
    builder.collective(OpKind::all_reduce, group, {.name = "reduce", .stream = Stream::tp}, x, x);
    ran(start, end);
  };
  kernel(many, OpKind::fill, Phase::forward, 0, 8);
  kernel(many, OpKind::fill, Phase::recompute, 8, 9);
  kernel(one, OpKind::fill, Phase::forward, 1, 3);
  all_reduce(many, Axis::tp, 2, 3);
  all_reduce(one, Axis::dp, 5, 6);
  EXPECT_THAT(time_by_kind(builder.finish(), timeline),
              ElementsAre(FieldsAre("fill", Phase::forward, 4 / 8.0, (3 * 8 + 2) / 8.0, 0),
                          FieldsAre("fill", Phase::recompute, 3 / 8.0, 3 / 8.0, 0),
                          FieldsAre("all_reduce (tp)", Phase::forward, 3 / 8.0, 3 / 8.0, 0),
                          FieldsAre("all_reduce (dp)", Phase::forward, 1 / 8.0, 1 / 8.0, 0)));
}

TEST(TimeByKind, LeavesNoTaskOutOnRandomDags) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    Dag dag = random_dag(seed);
    for (Rank& rank : dag.ranks) rank.count = rank.world_rank + 1;
    FakeBackend backend([](TaskId id) { return 0.125 * ((id * 2654435761U >> 16) % 32); });
    const Timeline timeline = execute(dag, backend);
    std::map<std::pair<std::string, Phase>, std::pair<double, Seconds>> expected;
    double ranks = 0;
    for (const Rank& rank : dag.ranks) ranks += rank.count;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      const double share = dag.ranks[dag.tasks[id].rank].count / ranks;
      auto& [count, time] = expected[{kind_of(dag, id), dag.tasks[id].phase}];
      count += share;
      time += share * timeline.duration(id);
    }
    const std::vector<KindTime> kinds = time_by_kind(dag, timeline);
    EXPECT_EQ(kinds.size(), expected.size());
    for (const KindTime& kind : kinds) {
      const auto& [count, time] = expected[{kind.name, kind.phase}];
      EXPECT_NEAR(kind.count, count, 1e-9) << kind.name << ", seed " << seed;
      EXPECT_NEAR(kind.time, time, 1e-9) << kind.name << ", seed " << seed;
    }
    EXPECT_TRUE(std::ranges::is_sorted(kinds, std::greater<>(), &KindTime::time));
  }
}

TEST(TimeByKind, OfAnEmptyDagIsNothing) { EXPECT_TRUE(time_by_kind(DagBuilder().finish(), {}).empty()); }

TEST(WeightedSum, KeepsWhatOnlyOneHas) {
  const std::vector<KindTime> a{{"gemm", Phase::forward, 2, 8}, {"gemm", Phase::recompute, 2, 4}};
  const std::vector<KindTime> b{{"gemm", Phase::forward, 4, 16}, {"all_reduce (dp)", Phase::optimizer, 4, 36}};
  EXPECT_THAT(weighted_sum(a, 0.75, b, 0.25),
              ElementsAre(FieldsAre("gemm", Phase::forward, 2.5, 10, 0), FieldsAre("all_reduce (dp)", Phase::optimizer, 1, 9, 0),
                          FieldsAre("gemm", Phase::recompute, 1.5, 3, 0)));
}

}  // namespace
}  // namespace tandem::kinds_test
