#include "runtime/analysis/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "runtime/dag/dag_builder.h"

namespace tandem::memory_test {
namespace {

/// Buffers of one fp8 element a byte, and kernels at given times that touch them.
class HandMade {
 public:
  RankIndex rank(std::int32_t stage = 0) { return builder_.add_rank({.pp = stage}); }
  BufferId buffer(RankIndex rank, BufferKind kind, Bytes bytes) { return builder_.buffer(rank, kind, DType::f8, Shape(bytes)); }
  BufferId view(BufferId of, std::int64_t offset, Bytes bytes) { return builder_.view(of, offset, Shape(bytes)); }
  void touch(BufferId buffer, Seconds start, Seconds end) {
    builder_.kernel(OpKind::fill, {}, {.name = "kernel"}, {}, {}, {{buffer}});
    timeline_.start.push_back(start);
    timeline_.end.push_back(end);
  }
  /// Bytes that the framework holds beside each kernel, for each element of its largest operand.
  void hold(double bytes) {
    builder_.dag().software.extra[static_cast<std::size_t>(Pass::forward)][static_cast<std::size_t>(OpKind::fill)].holds = bytes;
  }
  void reserve(Bytes bytes) { builder_.dag().software.reserved = bytes; }
  std::vector<MemoryUse> use() { return memory_use(builder_.finish(), timeline_); }
  std::vector<MemoryUse> by_stage(std::int32_t stages) {
    builder_.dag().info.stages = stages;
    const Dag dag = builder_.finish();
    return memory_by_stage(dag, memory_use(dag, timeline_));
  }

 private:
  DagBuilder builder_;
  Timeline timeline_;
};

TEST(MemoryUse, PersistentBuffersCountWhetherTouchedOrNot) {
  HandMade step;
  const RankIndex rank = step.rank();
  step.buffer(rank, BufferKind::parameter, 1);
  step.buffer(rank, BufferKind::gradient, 20);
  step.buffer(rank, BufferKind::optimizer, 300);
  step.buffer(rank, BufferKind::input, 4000);
  const MemoryUse use = step.use()[rank];
  EXPECT_EQ(use.parameters, 1);
  EXPECT_EQ(use.gradients, 20);
  EXPECT_EQ(use.optimizer, 300);
  EXPECT_EQ(use.buffers, 4000);
  EXPECT_EQ(use.peak(), 4321);
}

TEST(MemoryUse, WhatTheFrameworkReservesCountsOnEveryRank) {
  HandMade step;
  const RankIndex first = step.rank(), second = step.rank();
  step.reserve(50'000);
  step.buffer(first, BufferKind::input, 4000);
  step.touch(step.buffer(second, BufferKind::activation, 7), 0, 1);
  const std::vector<MemoryUse> use = step.use();
  EXPECT_EQ(use[first].peak(), 54'000);
  EXPECT_EQ(use[second].peak(), 50'007);
}

TEST(MemoryUse, ActivationsLiveFromTheFirstTouchToTheLast) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId kept = step.buffer(rank, BufferKind::activation, 10);
  const BufferId first = step.buffer(rank, BufferKind::activation, 7);
  const BufferId second = step.buffer(rank, BufferKind::activation, 5);
  step.buffer(rank, BufferKind::activation, 1000);  // nobody touches it
  step.touch(kept, 0, 1);
  step.touch(first, 1, 2);
  step.touch(second, 3, 4);
  step.touch(kept, 5, 6);
  const MemoryUse use = step.use()[rank];
  EXPECT_EQ(use.activations, 10 + 7);  // at 1; `first` is gone before `second` comes
  EXPECT_EQ(use.peak_at, 1);
}

// Those of one instant: what is freed, then the smaller allocations, and equal ones by their buffers.
TEST(MemoryUse, ChangesComeInTimesOrder) {
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t end) { return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random); };
  DagBuilder builder;
  Timeline timeline;
  for (int rank = 0; rank < 3; ++rank) builder.add_rank({});
  std::vector<BufferId> buffers;
  for (int i = 0; i < 500; ++i)
    buffers.push_back(builder.buffer(below(3), BufferKind::activation, DType::f8, Shape(std::int64_t{1 + below(4)})));
  for (int i = 0; i < 3000; ++i) {
    builder.kernel(OpKind::fill, {}, {.name = "kernel"}, {}, {}, {{buffers[below(500)]}});
    timeline.start.push_back(1e-6 * below(200) + 1e-14 * below(3));
    timeline.end.push_back(timeline.start.back() + 1e-6 * below(3));
  }
  const Dag dag = builder.finish();
  const MemoryChanges changes(dag, timeline);
  for (RankIndex rank = 0; rank < 3; ++rank) {
    const std::vector<MemoryChange> of_rank = changes[rank];
    EXPECT_GT(of_rank.size(), 200U);
    EXPECT_TRUE(
        std::ranges::all_of(of_rank, [&](const MemoryChange& change) { return dag.buffers[change.buffer].rank == rank; }));
    const auto before = [](const MemoryChange& a, const MemoryChange& b) {
      return std::tuple(instant_of(a.at), a.bytes, a.buffer) < std::tuple(instant_of(b.at), b.bytes, b.buffer);
    };
    EXPECT_TRUE(std::ranges::is_sorted(of_rank, before));
  }
}

TEST(MemoryUse, WhatIsFreedMakesRoomAtOnce) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId first = step.buffer(rank, BufferKind::activation, 7);
  const BufferId second = step.buffer(rank, BufferKind::activation, 5);
  step.touch(first, 0, 2);
  step.touch(second, 2, 4);
  EXPECT_EQ(step.use()[rank].peak(), 7);
}

TEST(MemoryUse, CountsWhatTheFrameworkHoldsWhileAKernelRuns) {
  HandMade step;
  step.hold(8);
  const RankIndex rank = step.rank();
  const BufferId large = step.buffer(rank, BufferKind::activation, 7);
  const BufferId small = step.buffer(rank, BufferKind::activation, 5);
  step.touch(large, 0, 2);
  step.touch(small, 3, 4);
  step.touch(large, 5, 6);
  const MemoryUse use = step.use()[rank];
  EXPECT_EQ(use.activations, 7 + 8 * 7);  // not 5 + 8 * 5 beside the 7 that live on
  EXPECT_EQ(use.peak_at, 0);
}

TEST(MemoryUse, TellsActivationsFromCommunicationAtThePeak) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId activation = step.buffer(rank, BufferKind::activation, 6);
  const BufferId gathered = step.buffer(rank, BufferKind::communication, 8);
  const BufferId later = step.buffer(rank, BufferKind::activation, 7);
  step.buffer(rank, BufferKind::input, 2);
  step.touch(activation, 0, 3);
  step.touch(gathered, 1, 2);
  step.touch(later, 3, 4);
  const MemoryUse use = step.use()[rank];
  EXPECT_EQ(use.activations, 6);
  EXPECT_EQ(use.buffers, 8 + 2);
  EXPECT_EQ(use.peak_at, 1);
}

TEST(MemoryUse, AViewKeepsItsWholeBufferAlive) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId whole = step.buffer(rank, BufferKind::activation, 16);
  const BufferId meanwhile = step.buffer(rank, BufferKind::activation, 1);
  step.touch(step.view(whole, 0, 4), 0, 1);
  step.touch(meanwhile, 2, 3);
  step.touch(step.view(whole, 12, 4), 4, 5);
  const MemoryUse use = step.use()[rank];
  EXPECT_EQ(use.peak(), 16 + 1);
  EXPECT_EQ(use.peak_at, 2);
}

TEST(MemoryUse, OfAStageIsThatOfItsFullestRank) {
  HandMade step;
  for (const auto& [stage, bytes] : {std::pair{0, 5}, {1, 3}, {0, 9}, {1, 2}}) {
    step.buffer(step.rank(stage), BufferKind::parameter, bytes);
  }
  const std::vector<MemoryUse> stages = step.by_stage(2);
  ASSERT_EQ(stages.size(), 2);
  EXPECT_EQ(stages[0].peak(), 9);
  EXPECT_EQ(stages[1].peak(), 3);
}

}  // namespace
}  // namespace tandem::memory_test
