#include "runtime/analysis/time_parts.h"

#include <gtest/gtest.h>

#include "runtime/executor.h"
#include "tests/runtime/fake_backend.h"
#include "tests/runtime/random_dag.h"

namespace tandem::time_parts_test {
namespace {

/// A hand-made timeline: each task is told when it ran. A rank's kernels and communications all touch one buffer, so each waits
/// for the one before it; `apart` gives a task a buffer of its own.
class HandMade {
 public:
  RankIndex rank(std::uint32_t count = 1, std::int32_t stage = 0) {
    const RankIndex rank = builder_.add_rank({.count = count, .pp = stage});
    builder_.dag().info.stages = std::max(builder_.dag().info.stages, stage + 1);
    data_.push_back(builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(1)));
    return rank;
  }
  BufferId apart(RankIndex rank) { return builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(1)); }

  void kernel(RankIndex rank, Seconds start, Seconds end, Phase phase = Phase::forward) {
    builder_.kernel(OpKind::fill, {}, {.name = "kernel", .phase = phase}, {}, {}, {{data_[rank]}});
    ran(start, end);
  }
  void kernel_after(BufferId x, BufferId y, Seconds start, Seconds end) {
    builder_.kernel(OpKind::add, {}, {.name = "kernel"}, {{x, y}}, {});
    ran(start, end);
  }
  void all_reduce(RankIndex rank, Axis axis, Seconds start, Seconds end) { all_reduce_of(data_[rank], axis, start, end); }
  void all_reduce_of(BufferId data, Axis axis, Seconds start, Seconds end) {
    const CommunicatorId group = builder_.add_communicator({.name = "group", .axis = axis, .members = {0, 1}, .layout = {}});
    const Stream stream = axis == Axis::tp ? Stream::tp : Stream::dp;
    builder_.collective(OpKind::all_reduce, group, {.name = "reduce", .stream = stream}, data, data);
    ran(start, end);
  }

  std::vector<TimeParts> parts() {
    const Dag dag = builder_.finish();
    return time_parts(dag, timeline_);
  }
  TimeParts mean() {
    const Dag dag = builder_.finish();
    return mean_over_ranks(dag, time_parts(dag, timeline_));
  }
  std::vector<StageTime> by_stage() {
    const Dag dag = builder_.finish();
    return mean_by_stage(dag, time_parts(dag, timeline_));
  }

 private:
  DagBuilder builder_;
  std::vector<BufferId> data_;
  Timeline timeline_;

  void ran(Seconds start, Seconds end) {
    timeline_.start.push_back(start);
    timeline_.end.push_back(end);
  }
};

TEST(TimeParts, KernelsAreComputeOrOptimizerByPhase) {
  HandMade step;
  const RankIndex rank = step.rank();
  step.kernel(rank, 0, 1);
  step.kernel(rank, 1, 3, Phase::recompute);
  step.kernel(rank, 3, 7, Phase::backward_input);
  step.kernel(rank, 7, 15, Phase::backward_weight);
  step.kernel(rank, 15, 31, Phase::optimizer);
  step.kernel(rank, 31, 63);
  const TimeParts parts = step.parts()[rank];
  EXPECT_EQ(parts.in_phase(Phase::forward), 1 + 32);
  EXPECT_EQ(parts.in_phase(Phase::recompute), 2);
  EXPECT_EQ(parts.in_phase(Phase::backward_input), 4);
  EXPECT_EQ(parts.in_phase(Phase::backward_weight), 8);
  EXPECT_EQ(parts.compute(), 63 - 16);
  EXPECT_EQ(parts.optimizer(), 16);
  EXPECT_EQ(parts.bubble, 0);
  EXPECT_EQ(parts.total(), 63);
}

TEST(TimeParts, ACollectiveIsExposedWhileItRunsAndItsOwnWaitIsBubble) {
  HandMade step;
  const RankIndex rank = step.rank();
  step.kernel(rank, 0, 2);
  step.all_reduce(rank, Axis::tp, 3, 5);  // another member was ready at 3 only
  step.kernel(rank, 5, 8);
  const TimeParts parts = step.parts()[rank];
  EXPECT_DOUBLE_EQ(parts.compute(), 2 + 3);
  EXPECT_DOUBLE_EQ(parts.exposed_on(Axis::tp), 2);
  EXPECT_DOUBLE_EQ(parts.bubble, 1);
}

TEST(TimeParts, WhatRunsBesideAKernelIsHidden) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId gradients = step.apart(rank);
  step.all_reduce_of(gradients, Axis::dp, 1, 6);
  step.kernel(rank, 0, 5);
  step.kernel_after(gradients, gradients, 6, 7);
  const TimeParts parts = step.parts()[rank];
  EXPECT_DOUBLE_EQ(parts.exposed_on(Axis::dp), 1);  // from 5 to 6
  EXPECT_DOUBLE_EQ(parts.bubble, 0);
}

TEST(TimeParts, AChainOfCommunicationsCountsEachOnItsAxis) {
  HandMade step;
  const RankIndex rank = step.rank();
  step.kernel(rank, 0, 1);
  step.all_reduce(rank, Axis::dp, 1, 3);
  step.all_reduce(rank, Axis::tp, 4, 6);
  step.kernel(rank, 6, 7);
  const TimeParts parts = step.parts()[rank];
  EXPECT_DOUBLE_EQ(parts.exposed_on(Axis::dp), 2);
  EXPECT_DOUBLE_EQ(parts.exposed_on(Axis::tp), 2);
  EXPECT_DOUBLE_EQ(parts.bubble, 1);
}

TEST(TimeParts, OfTwoCommunicationsTheOneThatEndedLastIsToBlame) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId a = step.apart(rank);
  const BufferId b = step.apart(rank);
  step.kernel(rank, 0, 1);
  step.all_reduce_of(a, Axis::tp, 1, 4);
  step.all_reduce_of(b, Axis::dp, 1, 3);
  step.kernel_after(a, b, 4, 5);
  const TimeParts parts = step.parts()[rank];
  EXPECT_DOUBLE_EQ(parts.exposed_on(Axis::tp), 3);
  EXPECT_DOUBLE_EQ(parts.exposed_on(Axis::dp), 0);
  EXPECT_DOUBLE_EQ(parts.bubble, 0);
}

TEST(TimeParts, TheWaitBeforeTheFirstKernelCounts) {
  HandMade step;
  const RankIndex rank = step.rank();
  step.all_reduce(rank, Axis::dp, 0, 2);
  step.kernel(rank, 2, 3);
  EXPECT_DOUBLE_EQ(step.parts()[rank].exposed_on(Axis::dp), 2);
}

TEST(TimeParts, AfterTheLastKernelACommunicationIsExposedAndTheRestIsBubble) {
  HandMade step;
  const RankIndex first = step.rank();
  const RankIndex last = step.rank();
  step.kernel(first, 0, 1);
  step.all_reduce(first, Axis::dp, 1.5, 4);
  step.kernel(last, 0, 6);
  const std::vector<TimeParts> parts = step.parts();
  EXPECT_DOUBLE_EQ(parts[first].exposed_on(Axis::dp), 2.5);
  EXPECT_DOUBLE_EQ(parts[first].bubble, 0.5 + 2);
  EXPECT_DOUBLE_EQ(parts[last].compute(), 6);
  EXPECT_DOUBLE_EQ(parts[last].bubble, 0);
}

TEST(TimeParts, ARankWithoutTasksWaitsTheWholeStep) {
  HandMade step;
  const RankIndex idle = step.rank();
  step.kernel(step.rank(), 0, 4);
  EXPECT_DOUBLE_EQ(step.parts()[idle].bubble, 4);
}

TEST(TimeParts, TheMeanWeighsEachRankByWhatItStandsFor) {
  HandMade step;
  const RankIndex many = step.rank(3);
  const RankIndex one = step.rank(1);
  step.kernel(many, 0, 4);
  step.kernel(one, 0, 8);
  const TimeParts mean = step.mean();
  EXPECT_DOUBLE_EQ(mean.compute(), (3 * 4 + 8) / 4.0);
  EXPECT_DOUBLE_EQ(mean.bubble, 3 * 4 / 4.0);
  EXPECT_DOUBLE_EQ(mean.total(), 8);
}

TEST(TimeParts, TheMeanOfAStageIsThatOfItsRanks) {
  HandMade step;
  step.kernel(step.rank(3, 0), 0, 4);
  step.kernel(step.rank(1, 1), 0, 8);
  step.kernel(step.rank(1, 0), 0, 2, Phase::optimizer);
  const std::vector<StageTime> stages = step.by_stage();
  ASSERT_EQ(stages.size(), 2);
  EXPECT_EQ(stages[0].ranks, 4);
  EXPECT_DOUBLE_EQ(stages[0].parts.compute(), 3 * 4 / 4.0);
  EXPECT_DOUBLE_EQ(stages[0].parts.optimizer(), 2 / 4.0);
  EXPECT_DOUBLE_EQ(stages[0].parts.bubble, (3 * 4 + 6) / 4.0);
  EXPECT_EQ(stages[1].ranks, 1);
  EXPECT_DOUBLE_EQ(stages[1].parts.compute(), 8);
  for (const StageTime& stage : stages) EXPECT_DOUBLE_EQ(stage.parts.total(), 8);
}

TEST(TimeParts, SumToTheStepOnRandomDags) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Dag dag = random_dag(seed);
    FakeBackend backend([](TaskId id) { return 0.125 * ((id * 2654435761U >> 16) % 32); });  // dyadic: sums are exact
    const Timeline timeline = execute(dag, backend);
    std::vector<Seconds> kernels(dag.ranks.size(), 0);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (!is_communication(dag.tasks[id].op)) kernels[dag.tasks[id].rank] += timeline.duration(id);
    }
    const std::vector<TimeParts> parts = time_parts(dag, timeline);
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      EXPECT_DOUBLE_EQ(parts[rank].total(), timeline.makespan()) << "rank " << rank << ", seed " << seed;
      EXPECT_DOUBLE_EQ(parts[rank].compute() + parts[rank].optimizer(), kernels[rank]) << "rank " << rank << ", seed " << seed;
      EXPECT_GE(parts[rank].bubble, 0);
      for (const Seconds exposed : parts[rank].exposed) EXPECT_GE(exposed, 0);
    }
  }
}

}  // namespace
}  // namespace tandem::time_parts_test
