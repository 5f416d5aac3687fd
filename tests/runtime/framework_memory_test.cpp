#include "runtime/analysis/framework_memory.h"

#include <gtest/gtest.h>

#include "runtime/analysis/allocator_replay.h"
#include "runtime/analysis/memory.h"
#include "runtime/analysis/memory_origins.h"
#include "runtime/dag/dag_builder.h"

namespace tandem::framework_memory_test {
namespace {

constexpr Bytes kibi = 1024, mebi = 1024 * kibi;

/// Tasks of one rank, one after the other, a second each.
class Step {
 public:
  Step() { rank_ = builder_.add_rank({}); }
  Software& software() { return builder_.dag().software; }
  BufferId buffer(BufferKind kind, DType type, Shape shape) { return builder_.buffer(rank_, kind, type, shape); }
  BufferId activation(Bytes bytes) { return buffer(BufferKind::activation, DType::f8, Shape(bytes)); }
  void touch(BufferId buffer) {
    builder_.kernel(OpKind::fill, {}, {.name = "fill"}, {}, {}, {{buffer}});
    pass();
  }
  /// A product of bf16 that adds to the gradient of a weight.
  void add_product(const std::string& name, std::int16_t layer, BufferId gradient) {
    const Shape shape = builder_.dag().buffers[gradient].shape;
    const BufferId a = buffer(BufferKind::input, DType::bf16, Shape(8, shape[0]));
    const BufferId b = buffer(BufferKind::input, DType::bf16, Shape(8, shape[1]));
    builder_.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true},
                    {.name = name, .phase = Phase::backward_weight, .layer = layer}, {{a, b}}, {}, {{gradient}});
    pass();
  }
  /// A product of rows of fp8 with the whole buffer as one matrix of 1,024 columns, or as those of so many experts.
  void multiply(BufferId weights, int experts) {
    const std::int64_t rows = builder_.dag().buffers[weights].shape.elements() / 1024;
    const BufferId x = buffer(BufferKind::input, DType::bf16, Shape(8, 1024));
    const BufferId matrix = builder_.view(weights, 0, Shape(rows, 1024));
    const BufferId y = buffer(BufferKind::input, DType::bf16, Shape(8, rows / experts));
    const TaskLabels labels{.name = "up", .layer = 0};
    if (experts == 1)
      builder_.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, labels, {{x, matrix}}, {{y}}, {});
    else
      builder_.kernel(OpKind::grouped_gemm,
                      GroupedGemmAttributes{.transpose_b = true,
                                            .rows = std::vector<std::int32_t>(static_cast<std::size_t>(experts), 8 / experts)},
                      labels, {{x, matrix}}, {{y}}, {});
    pass();
  }
  /// What inputs of less than 1 MiB take, all together less than 2 MiB.
  Bytes small_segments() const {
    for (const Buffer& buffer : dag_.buffers)
      if (buffer.kind == BufferKind::input) return 2 * mebi;
    return 0;
  }
  /// The gradient stands for its norm, too, which would be one more allocation.
  void update(BufferId gradient, BufferId weight, const std::vector<BufferId>& states) {
    builder_.kernel(OpKind::adam, AdamAttributes{}, {.name = "adam", .phase = Phase::optimizer}, {{gradient, gradient}},
                    {{weight}}, states);
    pass();
  }
  /// A buffer of weights in so many equal pieces.
  BufferId parameters(Bytes bytes, std::int64_t pieces) {
    const BufferId weights = buffer(BufferKind::parameter, DType::f8, Shape(bytes));
    for (std::int64_t i = 0; i < pieces; ++i)
      builder_.dag().shards.push_back({.buffer = view(weights, i * bytes / pieces, bytes / pieces), .tensor = "w"});
    return weights;
  }
  BufferId view(BufferId of, std::int64_t offset, std::int64_t elements) { return builder_.view(of, offset, Shape(elements)); }
  BufferId gradient(std::int64_t rows, std::int64_t columns) {
    return buffer(BufferKind::gradient, DType::f32, Shape(rows, columns));
  }
  void end() { dag_ = builder_.finish(); }
  const Dag& dag() const { return dag_; }
  const Timeline& timeline() const { return timeline_; }
  MemoryUse use() const { return memory_use(dag_, timeline_)[0]; }
  AllocatorUse allocator(bool expandable = false) const {
    const MemoryChanges changes(dag_, timeline_);
    return *AllocatorReplay(changes).of(0, {.expandable_segments = expandable});
  }

 private:
  DagBuilder builder_;
  RankIndex rank_ = 0;
  Dag dag_;
  Timeline timeline_;

  void pass() {
    const auto now = static_cast<Seconds>(timeline_.start.size());
    timeline_.start.push_back(now);
    timeline_.end.push_back(now + 1);
  }
};

TEST(FrameworkMemory, APlaceholderForEachShapeOfWeight) {
  Step step;
  step.software().placeholder_gradients = true;
  for (const std::int16_t layer : {std::int16_t{0}, std::int16_t{1}}) {
    for (int head = 0; head < 3; ++head) step.add_product("qkv", layer, step.gradient(16, 64));  // one matrix of 48 rows
    step.add_product("out", layer, step.gradient(64, 16));
    const BufferId up = step.gradient(256, 64);
    step.add_product("up", layer, up);
    step.add_product("up", layer, up);  // of the next micro-batch
    step.add_product("down", layer, step.gradient(64, 256));
  }
  step.end();
  const Bytes elements = 48 * 64 + 64 * 16 + 256 * 64 + 64 * 256;
  EXPECT_EQ(MemoryOrigins(step.dag()).framework[0].placeholders, 2 * elements);
  EXPECT_EQ(step.use().framework, 2 * elements);
}

TEST(FrameworkMemory, ThatOfAWeightOutsideOfLayersPasses) {
  Step step;
  step.software().placeholder_gradients = true;
  step.add_product("LM head", -1, step.gradient(100, 10));
  step.end();
  EXPECT_EQ(MemoryOrigins(step.dag()).framework[0].placeholders, 0);
  EXPECT_EQ(passing_placeholder(step.dag(), 0), 2 * 100 * 10);
  EXPECT_EQ(step.use().activations, 2 * 100 * 10);
}

TEST(FrameworkMemory, NoPlaceholdersUnlessTheFrameworkLeavesThem) {
  Step step;
  step.add_product("up", 0, step.gradient(100, 10));
  step.add_product("LM head", -1, step.gradient(100, 10));
  step.end();
  EXPECT_EQ(MemoryOrigins(step.dag()).framework[0].bytes(), 0);
  EXPECT_EQ(step.use().activations, 0);
}

TEST(AllocatorReplay, HoldsWhatTheStepHolds) {
  for (const bool expandable : {false, true}) {
    Step step;
    step.buffer(BufferKind::parameter, DType::f8, Shape(30 * mebi));
    step.software().reserved = 7 * mebi;
    const BufferId x = step.activation(50 * mebi), y = step.activation(11 * mebi + 1);
    step.touch(x);
    step.touch(y);
    step.touch(x);
    step.end();
    const AllocatorUse use = step.allocator(expandable);
    EXPECT_EQ(step.use().peak(), 98 * mebi + 1);
    EXPECT_GE(use.allocated, step.use().peak());
    EXPECT_LE(use.allocated, step.use().peak() + 4 * mebi);
    EXPECT_GE(use.reserved, use.allocated);
    EXPECT_EQ(use.left, 37 * mebi);       // what the step took is free again
    EXPECT_EQ(use.reserved, 100 * mebi);  // 30, 50, and 20 that 7 and 11 share; or five pages of 20
  }
}

TEST(AllocatorReplay, BuffersThatFollowEachOtherShareASegment) {
  Step step;
  for (int i = 0; i < 5; ++i) step.touch(step.activation(50 * mebi));
  step.end();
  EXPECT_EQ(step.allocator(), (AllocatorUse{.allocated = 50 * mebi, .reserved = 50 * mebi, .left = 0}));
}

/// Weights that move into a buffer leave holes of their size, which the step then fills.
TEST(AllocatorReplay, WeightsThatMoveLeaveHoles) {
  for (const bool moves : {false, true}) {
    Step step;
    step.software().moves_weights = moves;
    step.parameters(30 * mebi, 2);
    step.touch(step.activation(15 * mebi));
    step.end();
    EXPECT_EQ(step.allocator().left, 30 * mebi);
    EXPECT_EQ(step.allocator().reserved, 30 * mebi + (moves ? 2 * 16 : 16) * mebi);
  }
}

/// Pieces that one product multiplies by are one tensor, and leave one hole; experts of one product leave one each.
TEST(AllocatorReplay, WhatOneProductMultipliesByMovesAsOne) {
  for (const int experts : {0, 1, 2}) {
    Step step;
    step.software().moves_weights = true;
    const BufferId weights = step.parameters(60 * mebi, 4);
    if (experts > 0) step.multiply(weights, experts);
    step.touch(step.activation(25 * mebi));
    step.end();
    // 15 MiB and a rounding each, 60, or 30 twice: only where they are together do 25 find room.
    const Bytes holes = experts == 0 ? 4 * 16 * mebi : 60 * mebi;
    EXPECT_EQ(step.allocator().reserved, 60 * mebi + holes + (experts == 0 ? 26 * mebi : 0) + step.small_segments());
  }
}

/// The placeholder takes of the first step's activations; in the second they need as much again.
TEST(AllocatorReplay, PlaceholdersComeWithTheirProduct) {
  Step step;
  step.software().placeholder_gradients = true;
  step.touch(step.activation(50 * mebi));
  step.add_product("up", 0, step.gradient(5 * 1024, 1024));  // 20 MiB of fp32, 10 MiB of bf16
  step.end();
  EXPECT_EQ(step.allocator().reserved, (20 + 50 + 50) * mebi + step.small_segments());
}

/// A rank's slice of a bucket takes a state for each piece of a weight in it.
TEST(AllocatorReplay, StatesOfMovedWeightsAreOneForEach) {
  Step step;
  step.software().moves_weights = true;
  const BufferId weights = step.parameters(60 * mebi, 2);  // 30 Mi elements each of fp8
  const BufferId slice = step.view(weights, 20 * mebi, 20 * mebi);
  const BufferId master = step.buffer(BufferKind::optimizer, DType::f32, Shape(20 * mebi));
  const BufferId momentum = step.buffer(BufferKind::optimizer, DType::f32, Shape(20 * mebi));
  const BufferId variance = step.buffer(BufferKind::optimizer, DType::f32, Shape(20 * mebi));
  step.update(slice, slice, {master, momentum, variance});
  step.end();
  // Two holes of 30; three times 10 Mi elements of each weight, 40 MiB, none of which fits into a hole.
  EXPECT_EQ(step.allocator().left, (60 + 3 * 80) * mebi);
  EXPECT_EQ(step.allocator().reserved, (60 + 60 + 3 * 80) * mebi);
}

/// Adam makes its moments at the end of the first step, out of what that step has freed: then the second needs as much again.
TEST(AllocatorReplay, MomentsComeAfterTheFirstStep) {
  for (const bool adam : {false, true}) {
    Step step;
    const auto of_f32 = [&](BufferKind kind) { return step.buffer(kind, DType::f32, Shape(5 * mebi)); };
    const BufferId gradient = of_f32(BufferKind::gradient), master = of_f32(BufferKind::optimizer),
                   momentum = of_f32(BufferKind::optimizer), variance = of_f32(BufferKind::optimizer);
    const BufferId weight = step.buffer(BufferKind::parameter, DType::bf16, Shape(5 * mebi));
    step.touch(step.activation(60 * mebi));
    if (adam) step.update(gradient, weight, {master, momentum, variance});
    step.end();
    const Bytes states = 4 * 20 * mebi + 10 * mebi;
    EXPECT_EQ(step.allocator().allocated, states + 60 * mebi);
    EXPECT_EQ(step.allocator().reserved, states + (adam ? 80 : 60) * mebi) << "moments in 40 of the first step's 60";
  }
}

}  // namespace
}  // namespace tandem::framework_memory_test
