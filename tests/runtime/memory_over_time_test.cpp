#include "runtime/analysis/memory_over_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/dag/dag_builder.h"

namespace tandem::memory_over_time_test {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

constexpr MemoryDetail everything{.points = 1'000'000, .holders = 1'000'000};

/// Buffers of one fp8 element a byte, and kernels at given times that touch them.
class HandMade {
 public:
  RankIndex rank() { return builder_.add_rank({}); }
  BufferId buffer(RankIndex rank, BufferKind kind, Bytes bytes) { return builder_.buffer(rank, kind, DType::f8, Shape(bytes)); }
  BufferId view(BufferId of, std::int64_t offset, Bytes bytes) { return builder_.view(of, offset, Shape(bytes)); }
  TaskId write(const char* name, BufferId buffer, Seconds start, Seconds end) {
    return ran(builder_.kernel(OpKind::fill, {}, {.name = name}, {}, {{buffer}}), start, end);
  }
  TaskId read(const char* name, BufferId buffer, Seconds start, Seconds end) {
    return ran(builder_.kernel(OpKind::fill, {}, {.name = name}, {{buffer}}, {}), start, end);
  }
  void finish() { dag = builder_.finish(); }
  MemoryOverTime of(RankIndex rank, const MemoryDetail& detail = everything) {
    return memory_over_time(dag, timeline, {rank}, detail).front();
  }

  Dag dag;
  Timeline timeline;

 private:
  DagBuilder builder_;

  TaskId ran(TaskId id, Seconds start, Seconds end) {
    timeline.start.push_back(start);
    timeline.end.push_back(end);
    return id;
  }
};

TEST(MemoryOverTime, IsAStepFunctionWithItsPeakNamed) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId x = step.buffer(rank, BufferKind::activation, 10);
  const BufferId gathered = step.buffer(rank, BufferKind::communication, 5);
  const BufferId y = step.buffer(rank, BufferKind::activation, 20);
  const BufferId z = step.buffer(rank, BufferKind::activation, 8);
  step.buffer(rank, BufferKind::input, 3);
  step.buffer(rank, BufferKind::parameter, 1000);
  step.write("up", step.view(x, 0, 4), 1, 2);
  step.write("gather", gathered, 2, 3);
  const TaskId peak = step.write("down", y, 3, 4);
  step.read("down", x, 4, 5);
  step.write("up", z, 4, 6);
  step.read("later", x, 6, 7);
  step.finish();
  const MemoryOverTime memory = step.of(rank);
  EXPECT_EQ(memory.use.rank, rank);
  EXPECT_THAT(memory.points, ElementsAre(FieldsAre(0, 0, 3), FieldsAre(1, 10, 3), FieldsAre(2, 10, 3 + 5), FieldsAre(3, 30, 3),
                                         FieldsAre(4, 18, 3), FieldsAre(6, 10, 3), FieldsAre(7, 0, 3)));
  EXPECT_EQ(memory.use.peak_at, 3);
  EXPECT_EQ(memory.peak_task, peak);
  EXPECT_THAT(memory.largest, ElementsAre(FieldsAre("down", 20), FieldsAre("up", 10), FieldsAre("inputs", 3)));
  EXPECT_THAT(step.of(rank, {.holders = 1}).largest, ElementsAre(FieldsAre("down", 20)));
}

TEST(MemoryOverTime, ABufferBelongsToWhatWroteItFirst) {
  HandMade step;
  const RankIndex rank = step.rank();
  const BufferId x = step.buffer(rank, BufferKind::activation, 10);
  const BufferId never_written = step.buffer(rank, BufferKind::activation, 1);
  step.read("reads", x, 0, 1);
  step.write("writes", x, 1, 2);
  step.write("writes again", x, 2, 3);
  step.read("only reads", never_written, 3, 4);
  step.read("last", x, 4, 5);
  step.finish();
  EXPECT_THAT(step.of(rank).largest, ElementsAre(FieldsAre("writes", 10), FieldsAre("only reads", 1)));
}

TEST(MemoryOverTime, OfARankWithNothingButInputs) {
  HandMade step;
  const RankIndex rank = step.rank();
  step.buffer(rank, BufferKind::input, 3);
  step.finish();
  const MemoryOverTime memory = step.of(rank);
  EXPECT_THAT(memory.points, ElementsAre(FieldsAre(0, 0, 3)));
  EXPECT_EQ(memory.peak_task, no_id);
  EXPECT_THAT(memory.largest, ElementsAre(FieldsAre("inputs", 3)));
  EXPECT_THAT(memory_over_time(step.dag, step.timeline, {}), IsEmpty());
}

/// Buffers of random kinds and sizes on two ranks, each touched by a few kernels at random times.
HandMade random_step(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto between = [&](std::int64_t low, std::int64_t high) { return std::uniform_int_distribution(low, high)(random); };
  constexpr std::array kinds{BufferKind::activation, BufferKind::activation, BufferKind::communication, BufferKind::input,
                             BufferKind::gradient};
  constexpr std::array names{"up", "down", "norm", "gather"};
  HandMade step;
  step.rank(), step.rank();
  for (int i = 0; i < 300; ++i) {
    const BufferId buffer =
        step.buffer(static_cast<RankIndex>(between(0, 1)), kinds.at(static_cast<std::size_t>(between(0, 4))), between(1, 1000));
    for (std::int64_t touches = between(0, 3); touches > 0; --touches) {
      const auto start = static_cast<double>(between(0, 2000));
      const char* name = names.at(static_cast<std::size_t>(between(0, 3)));
      if (between(0, 1) == 0)
        step.write(name, buffer, start, start + static_cast<double>(between(1, 200)));
      else
        step.read(name, buffer, start, start + static_cast<double>(between(1, 200)));
    }
  }
  step.finish();
  return step;
}

/// Buffer by buffer, without anything of what is tested. Times are whole: half past tells what holds from the instant on.
MemoryPoint held(const HandMade& step, RankIndex rank, Seconds at) {
  MemoryPoint point{.at = at};
  for (BufferId id = 0; id < step.dag.buffers.size(); ++id) {
    const Buffer& buffer = step.dag.buffers[id];
    if (buffer.rank != rank) continue;
    Seconds begin = 1e9, end = -1;
    for (TaskId task = 0; task < step.dag.tasks.size(); ++task) {
      if (step.dag.operands_of(task).front().buffer != id) continue;
      begin = std::min(begin, step.timeline.start[task]);
      end = std::max(end, step.timeline.end[task]);
    }
    const bool alive = begin < at + 0.5 && at + 0.5 < end;
    if (buffer.kind == BufferKind::activation && alive) point.activations += buffer.bytes();
    if (buffer.kind == BufferKind::input || (buffer.kind == BufferKind::communication && alive)) point.buffers += buffer.bytes();
  }
  return point;
}

// Dates and places of changes are sorted by as one number where that has room for both, and apart in a step of decades.
TEST(MemoryChanges, AreInOrderHoweverLongTheStep) {
  constexpr double decades = 4e5;
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    HandMade step = random_step(seed);
    Timeline slow = step.timeline;
    for (std::vector<Seconds>* dates : {&slow.start, &slow.end})
      for (Seconds& date : *dates) date *= decades;
    const MemoryChanges usual(step.dag, step.timeline), longest(step.dag, slow);
    for (const RankIndex rank : {0U, 1U}) {
      const std::vector<MemoryChange> changes = usual[rank], same = longest[rank];
      ASSERT_EQ(changes.size(), same.size());
      EXPECT_TRUE(std::ranges::is_sorted(changes, {}, &MemoryChange::at));
      for (std::size_t i = 0; i < changes.size(); ++i) {
        EXPECT_EQ(decades * changes[i].at, same[i].at);
        EXPECT_EQ(std::pair(changes[i].buffer, changes[i].bytes), std::pair(same[i].buffer, same[i].bytes));
      }
    }
  }
}

TEST(MemoryOverTime, IsWhatIsAliveAndItsPeakIsThatOfMemoryUse) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    HandMade step = random_step(seed);
    const std::vector<MemoryUse> uses = memory_use(step.dag, step.timeline);
    for (const RankIndex rank : {0U, 1U}) {
      const MemoryOverTime memory = step.of(rank);
      Bytes most = 0;
      for (const MemoryPoint& point : memory.points) most = std::max(most, point.bytes());
      EXPECT_EQ(most, uses[rank].activations + uses[rank].buffers) << "seed " << seed;
      for (std::size_t i = 0; i < memory.points.size(); i += 10) {
        const MemoryPoint& point = memory.points[i];
        const MemoryPoint expected = held(step, rank, point.at);
        EXPECT_EQ(point.activations, expected.activations) << "at " << point.at << ", seed " << seed;
        EXPECT_EQ(point.buffers, expected.buffers) << "at " << point.at << ", seed " << seed;
      }
      Bytes sum = 0;
      for (const MemoryHolder& holder : memory.largest) sum += holder.bytes;
      EXPECT_EQ(sum, most) << "seed " << seed;
      EXPECT_EQ(step.timeline.start[memory.peak_task], memory.use.peak_at) << "seed " << seed;
    }
  }
}

Bytes value_at(const std::vector<MemoryPoint>& points, Seconds at) {
  const auto after = std::ranges::upper_bound(points, at, {}, &MemoryPoint::at);
  return (after - 1)->bytes();
}

TEST(MemoryOverTime, ThinnedKeepsThePeakAndTheEndOfEveryBin) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    HandMade step = random_step(seed);
    const std::vector<MemoryPoint> all = step.of(0).points;
    for (const std::size_t most : {4U, 21U, 80U}) {
      const std::vector<MemoryPoint> kept = step.of(0, {.points = most}).points;
      EXPECT_LE(kept.size(), most);
      EXPECT_LT(kept.size(), all.size());
      EXPECT_TRUE(std::ranges::is_sorted(kept, std::less<>(), &MemoryPoint::at));
      EXPECT_EQ(std::ranges::max(kept, {}, &MemoryPoint::bytes).bytes(), std::ranges::max(all, {}, &MemoryPoint::bytes).bytes());
      for (const MemoryPoint& point : kept) EXPECT_EQ(point.bytes(), value_at(all, point.at));
      EXPECT_EQ(kept.back().at, all.back().at);
      const std::size_t bins = (most - 1) / 2;
      for (std::size_t bin = 1; bin < bins; ++bin) {
        const Seconds edge = all.back().at * static_cast<double>(bin) / static_cast<double>(bins);
        EXPECT_EQ(value_at(kept, edge - 1e-6), value_at(all, edge - 1e-6))
            << "bin " << bin << " of " << bins << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::memory_over_time_test
