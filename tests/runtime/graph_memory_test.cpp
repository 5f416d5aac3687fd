// What CUDA graphs hold of a hand-made step: sizes by hand, from who writes and reads what.

#include "runtime/analysis/graph_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "runtime/analysis/allocator_replay.h"
#include "runtime/analysis/memory.h"
#include "runtime/analysis/memory_over_time.h"
#include "runtime/dag/dag_builder.h"

namespace tandem::graph_memory_test {
namespace {

/// Layers of attention and experts, as far as memory is concerned: a norm, attention and a residual sum, a router, and an
/// exchange and experts behind it. Every buffer has a size of its own.
constexpr Bytes input = 1, normed = 10, heads = 100, sum = 1'000, choices = 10'000, sent = 100'000, output = 1'000'000,
                gradient = 10'000'000, dchoices = 20'000'000, dheads = 40'000'000, dinput = 80'000'000;

class Step {
 public:
  explicit Step(HeldGraphs graphs) {
    rank_ = builder_.add_rank({});
    Software& software = builder_.dag().software;
    if (graphs != HeldGraphs::none) software.captured = {OpKind::attention};
    if (graphs == HeldGraphs::layers) software.issue.forward = 1e-6;
  }

  BufferId activation(Bytes bytes) { return builder_.buffer(rank_, BufferKind::activation, DType::f8, Shape(bytes)); }
  void run(OpKind op, const std::string& name, std::vector<BufferId> reads, std::vector<BufferId> writes) {
    const TaskLabels labels{.name = name, .phase = phase, .micro_batch = micro_batch, .layer = layer, .chunk = 0};
    builder_.kernel(op, attributes_of(op), labels, reads, writes);
    const auto now = static_cast<Seconds>(timeline.start.size());
    timeline.start.push_back(now);
    timeline.end.push_back(now + 1);
  }

  BufferId embedded() {
    const BufferId x = activation(input);
    outside_of_layers(Phase::forward, "embedding", {}, x);
    return x;
  }
  BufferId gradient_of_loss(BufferId y) {
    const BufferId dy = activation(gradient);
    outside_of_layers(Phase::backward_input, "loss", {y}, dy);
    return dy;
  }

  /// Returns the layer's output.
  BufferId forward(BufferId x) {
    phase = Phase::forward;
    Kept& kept = kept_[{layer, micro_batch}];
    kept = {.x = x,
            .n = activation(normed),
            .h = activation(heads),
            .s = activation(sum),
            .c = activation(choices),
            .e = activation(sent)};
    const BufferId y = activation(output);
    run(OpKind::unit_norm, "attention norm", {x}, {kept.n});
    run(OpKind::attention, "attention", {kept.n}, {kept.h});
    run(OpKind::add, "residual", {kept.x, kept.h}, {kept.s});
    run(OpKind::route, "router", {kept.s}, {kept.c});
    run(OpKind::permute, "dispatch", {kept.s, kept.c}, {kept.e});
    run(OpKind::add, "residual", {kept.s, kept.e}, {y});
    return y;
  }

  /// Returns the gradient of the layer's input.
  BufferId backward(BufferId dy) {
    phase = Phase::backward_input;
    const Kept& kept = kept_[{layer, micro_batch}];
    const BufferId ds = activation(gradient), dc = activation(dchoices), dh = activation(dheads), dx = activation(dinput);
    run(OpKind::permute_backward, "dispatch", {dy, kept.e}, {ds, dc});
    run(OpKind::route_backward, "router", {kept.c, dc}, {});
    run(OpKind::attention_backward, "attention", {kept.h, kept.n, ds}, {dh});
    run(OpKind::unit_norm_backward, "attention norm", {kept.x, dh}, {dx});
    return dx;
  }

  MemoryUse use() {
    if (dag.tasks.empty()) dag = builder_.finish();
    return memory_use(dag, timeline)[0];
  }

  std::int32_t micro_batch = 0;
  std::int16_t layer = 0;
  Phase phase = Phase::forward;
  Dag dag;
  Timeline timeline;

 private:
  void outside_of_layers(Phase of, const std::string& name, std::vector<BufferId> reads, BufferId written) {
    const std::int16_t before = std::exchange(layer, std::int16_t{-1});
    phase = of;
    run(OpKind::fill, name, std::move(reads), {written});
    layer = before;
  }
  struct Kept {
    BufferId x = 0, n = 0, h = 0, s = 0, c = 0, e = 0;
  };
  DagBuilder builder_;
  RankIndex rank_ = 0;
  std::map<std::pair<std::int16_t, std::int32_t>, Kept> kept_;

  static OpAttributes attributes_of(OpKind op) {
    if (op == OpKind::attention || op == OpKind::attention_backward) return AttentionAttributes{};
    if (op == OpKind::route || op == OpKind::route_backward) return RoutingAttributes{};
    return {};
  }
};

/// One micro-batch through two layers and back.
Step one_micro_batch(HeldGraphs graphs) {
  Step step(graphs);
  BufferId x = step.embedded();
  for (step.layer = 0; step.layer < 2; ++step.layer) x = step.forward(x);
  BufferId dx = step.gradient_of_loss(x);
  for (step.layer = 1; step.layer >= 0; --step.layer) dx = step.backward(dx);
  return step;
}

TEST(GraphMemory, CapturesUpToTheRouterAndItsBackward) {
  Step step = one_micro_batch(HeldGraphs::layers);
  step.use();
  const CapturedTasks captured = captured_tasks(step.dag);
  ASSERT_EQ(captured.callables.size(), 2U);
  for (const GraphCallable& callable : captured.callables) {
    std::vector<OpKind> ops;
    for (const auto* tasks : {&callable.forward, &callable.backward})
      for (const TaskId id : *tasks) ops.push_back(step.dag.tasks[id].op);
    EXPECT_EQ(ops, (std::vector{OpKind::unit_norm, OpKind::attention, OpKind::add, OpKind::route, OpKind::route_backward,
                                OpKind::attention_backward, OpKind::unit_norm_backward}));
  }
}

// Forward, each layer leaves what it norms, its heads, sum and choices in the pool, until its backward is through; the backward
// adds the gradients of heads and of the input. Inputs of the layers are copied: the embedding's and the first layer's output. A
// backward graph begins with the gradients of sums and choices, one set for both.
TEST(GraphMemory, HoldsWhatCapturedTasksAllocate) {
  Step step = one_micro_batch(HeldGraphs::layers);
  const MemoryUse use = step.use();
  const GraphMemory graphs = graph_memory(MemoryChanges(step.dag, step.timeline)[0]);
  const Bytes of_layer = normed + heads + sum + choices;
  EXPECT_EQ(graphs.pool_activations, of_layer + sum + choices + dheads + dinput);
  EXPECT_EQ(graphs.inputs, input + output);
  EXPECT_EQ(graphs.gradients, gradient + dchoices);
  EXPECT_EQ(use.graphs(), graphs.bytes());
  EXPECT_EQ(use.graph_buffers, 0);
  // Beside them the step is fullest where the second layer's backward makes gradients of what the loss gave: what was sent of
  // both layers waits for the backward, their inputs and outputs do not.
  EXPECT_EQ(use.activations, graphs.bytes() + 2 * sent + 2 * gradient + dchoices);
}

TEST(GraphMemory, OfTheWholeStepIsItsPeak) {
  Step without = one_micro_batch(HeldGraphs::none), whole = one_micro_batch(HeldGraphs::step);
  EXPECT_EQ(without.use().graphs(), 0);
  EXPECT_EQ(whole.use().activations, without.use().activations);
  EXPECT_EQ(whole.use().graphs(), without.use().activations);
  EXPECT_EQ(whole.use().peak_at, without.use().peak_at);
}

// What does not lie in graphs at the peak is none of theirs: they hold no less than what is saved by leaving them out.
TEST(GraphMemory, TakesNoLessThanTheStepWithoutGraphs) {
  Step without = one_micro_batch(HeldGraphs::none), layers = one_micro_batch(HeldGraphs::layers);
  EXPECT_GE(layers.use().peak(), without.use().peak());
}

// Two micro-batches one after the other have the copies and the pool of one; two at a time have those of two.
TEST(GraphMemory, GrowsWithMicroBatchesInFlight) {
  const auto inputs = [](bool at_once) {
    Step step(HeldGraphs::layers);
    const auto end = [&](BufferId y) { step.backward(step.gradient_of_loss(y)); };
    BufferId y[2];
    for (step.micro_batch = 0; step.micro_batch < 2; ++step.micro_batch) {
      y[step.micro_batch] = step.forward(step.embedded());
      if (!at_once) end(y[step.micro_batch]);
    }
    if (at_once)
      for (step.micro_batch = 0; step.micro_batch < 2; ++step.micro_batch) end(y[step.micro_batch]);
    step.use();
    return graph_memory(MemoryChanges(step.dag, step.timeline)[0]);
  };
  const GraphMemory one = inputs(false), two = inputs(true);
  EXPECT_EQ(one.inputs, input);
  EXPECT_EQ(two.inputs, 2 * input);
  EXPECT_EQ(one.pool_activations, sum + choices + dheads + dinput);
  EXPECT_EQ(two.pool_activations - one.pool_activations, normed + heads + sum + choices);
  EXPECT_EQ(two.gradients, one.gradients);
}

// What an earlier micro-batch has left, as cast weights, is read where it lies.
TEST(GraphMemory, CopiesWhatIsOfTheMicroBatch) {
  Step step(HeldGraphs::layers);
  const BufferId weight = step.activation(sent), y = step.activation(output);
  step.phase = Phase::forward;
  step.run(OpKind::cast, "cast", {}, {weight});
  step.micro_batch = 1;
  const BufferId x = step.embedded();
  step.phase = Phase::forward;
  step.run(OpKind::attention, "attention", {x, weight}, {y});
  step.run(OpKind::add, "residual", {x, y}, {y});
  step.use();
  EXPECT_EQ(graph_memory(MemoryChanges(step.dag, step.timeline)[0]).inputs, input);
}

// A layer that neither mixes positions nor routes is not captured.
TEST(GraphMemory, LeavesOtherLayersOut) {
  Step step(HeldGraphs::layers);
  const BufferId x = step.embedded(), n = step.activation(normed), y = step.activation(output);
  step.phase = Phase::forward;
  step.run(OpKind::unit_norm, "mlp norm", {x}, {n});
  step.run(OpKind::add, "residual", {x, n}, {y});
  EXPECT_EQ(step.use().graphs(), 0);
  EXPECT_TRUE(captured_tasks(step.dag).empty());
}

// Over time they are there from the beginning on, and named among what is largest.
TEST(GraphMemory, IsThereAllTheTime) {
  Step step = one_micro_batch(HeldGraphs::layers);
  const MemoryUse use = step.use();
  const MemoryOverTime memory = memory_over_time(step.dag, step.timeline, {0})[0];
  EXPECT_EQ(memory.points.front().activations, use.graph_activations + input);
  Bytes most = 0, held = 0;
  for (const MemoryPoint& point : memory.points) most = std::max(most, point.bytes());
  for (const MemoryHolder& holder : memory.largest)
    if (holder.name == "CUDA graphs") held = holder.bytes;
  EXPECT_EQ(most, use.activations + use.buffers);
  EXPECT_EQ(held, use.graphs());
}

// The allocator has the pool's segments beside those of the other tensors, and cuts no smaller blocks than 512 bytes.
TEST(GraphMemory, IsReservedByItself) {
  Step step = one_micro_batch(HeldGraphs::layers);
  const MemoryUse use = step.use();
  const MemoryChanges changes(step.dag, step.timeline);
  const AllocatorUse allocator = *AllocatorReplay(changes).of(0);
  EXPECT_GE(allocator.allocated, use.peak());
  EXPECT_LE(allocator.allocated, use.peak() + 64 * 512 + 8 * (Bytes{1} << 20));  // rests of large blocks of up to 1 MiB
  EXPECT_GE(allocator.reserved, allocator.allocated);
  EXPECT_EQ(allocator.left % 512, 0);
}

}  // namespace
}  // namespace tandem::graph_memory_test
