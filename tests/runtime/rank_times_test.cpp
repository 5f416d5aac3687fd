// What each process of a launch sends of its rank's times, and the whole that rank 0 makes of it.
#include "runtime/launch/rank_times.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/dag/dag_builder.h"
#include "runtime/execution/launched_step.h"

namespace tandem::rank_times_test {
namespace {

/// Three ranks, of which the last has no tasks; their tasks take turns.
Dag taking_turns() {
  DagBuilder builder;
  builder.dag().devices.emplace_back();
  for (std::uint32_t rank = 0; rank < 3; ++rank) builder.add_rank({.world_rank = rank});
  for (int i = 0; i < 5; ++i) {
    const BufferId buffer = builder.buffer(static_cast<RankIndex>(i % 2), BufferKind::activation, DType::f32, Shape(8));
    builder.kernel(OpKind::fill, ScaleAttributes{}, {.name = "fill"}, {}, {{buffer}});
  }
  return builder.finish();
}

TEST(RankTimes, ComeTogetherByRank) {
  const Dag dag = taking_turns();
  const Timeline whole{.start = {0, 1, 2, 3, 4}, .end = {0.5, 1.5, 2.5, 3.5, 4.5}};
  std::vector<std::string> parts;
  for (RankIndex rank = 0; rank < 3; ++rank) {
    Timeline own = whole;  // of the others a process knows nothing
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (dag.tasks[id].rank != rank) own.start[id] = own.end[id] = 0;
    parts.push_back(own_times(dag, rank, own));
  }
  EXPECT_EQ(parts[2], "");
  const Timeline found = times_of_all(dag, parts);
  EXPECT_EQ(found.start, whole.start);
  EXPECT_EQ(found.end, whole.end);
}

TEST(RankTimes, OfAnotherRankAreRefused) {
  const Dag dag = taking_turns();
  const Timeline timeline{.start = std::vector<Seconds>(5), .end = std::vector<Seconds>(5)};
  const std::string first = own_times(dag, 0, timeline), second = own_times(dag, 1, timeline);
  EXPECT_NO_THROW(times_of_all(dag, {first, second, ""}));
  EXPECT_THROW(times_of_all(dag, {second, first, ""}), std::runtime_error);
  EXPECT_THROW(times_of_all(dag, {first, second, "x"}), std::runtime_error);
  EXPECT_THROW(times_of_all(dag, {first, second}), std::runtime_error);
  EXPECT_THROW(times_of_all(dag, {first}), std::runtime_error);
}

// Losses are shares of the whole's, and the step lasts until the slowest rank has ended.
TEST(LaunchedMeasurements, AddUpLossesAndTakeTheSlowest) {
  Dag dag = taking_turns();
  dag.info.steps = 2;
  const Timeline timeline{.start = std::vector<Seconds>(5), .end = std::vector<Seconds>(5, 1.0)};
  std::vector<std::string> all;
  for (RankIndex rank = 0; rank < 3; ++rank)
    all.push_back(own_measurement(dag, rank, timeline, {.loss_share = 1.0 + rank, .undated = 4.0 - rank}));
  const LaunchedStep step = merged(dag, all);
  EXPECT_EQ(step.loss, 3);
  EXPECT_EQ(step.undated_step, 2);
  EXPECT_EQ(step.timeline.end, timeline.end);
  EXPECT_THROW(merged(dag, {all[0], all[1], "too short"}), std::runtime_error);
}

}  // namespace
}  // namespace tandem::rank_times_test
