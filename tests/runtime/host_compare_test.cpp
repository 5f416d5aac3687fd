#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "runtime/dag/dag_builder.h"
#include "runtime/host/compare.h"
#include "runtime/host/unsharded.h"

namespace tandem::host_compare_test {
namespace {

constexpr std::int64_t rows = 4, columns = 6;
constexpr std::int64_t padding = 2;

/// A step that is not run: each rank holds `rows_each` rows of the tensor "w" from `first_row` on in a padded flat buffer, Adam
/// updates the buffer in two slices, and a loss is written. The test fills in what the step would have written.
class Step {
 public:
  void add_rank(std::int64_t first_row, std::int64_t rows_each, std::int32_t tp = 0, std::int32_t dp = 0) {
    const RankIndex rank = builder_.add_rank({.world_rank = world_++, .tp = tp, .dp = dp});
    const std::int64_t n = rows_each * columns + padding;
    const BufferId parameter = builder_.buffer(rank, BufferKind::parameter, DType::bf16, Shape(n));
    const BufferId gradient = builder_.buffer(rank, BufferKind::gradient, DType::f32, Shape(n));
    builder_.dag().shards.push_back({.buffer = builder_.view(parameter, 0, Shape(rows_each, columns)),
                                     .tensor = "w",
                                     .tensor_rows = rows,
                                     .tensor_columns = columns,
                                     .row = first_row,
                                     .rows = rows_each,
                                     .columns = columns});
    // The cut lies inside a row.
    update(rank, parameter, gradient, 0, columns / 2);
    update(rank, parameter, gradient, columns / 2, n - columns / 2);
    gradients_.push_back(gradient);
    parameters_.push_back(parameter);
    losses_.push_back(add_loss(rank));
  }

  /// After all ranks: the biases of two experts on rank 0, and the counts that they follow.
  void add_biases() {
    const auto state = [&] { return builder_.buffer(0, BufferKind::optimizer, DType::f32, Shape(1, 2)); };
    counts_ = state();
    biases_ = state();
    builder_.dag().shards.push_back(
        {.buffer = biases_, .tensor = "router.bias", .tensor_rows = 1, .tensor_columns = 2, .rows = 1, .columns = 2});
    builder_.kernel(OpKind::update_expert_bias, ScaleAttributes{}, {.name = "expert bias"}, std::array{counts_}, {},
                    std::array{biases_});
  }
  void fill_biases(float count) {
    for (const BufferId buffer : {counts_, biases_}) std::fill_n(memory_->tensor(buffer).f32(), 2, count);
  }

  void finish() {
    dag_ = builder_.finish();
    memory_.emplace(dag_, 1);
    for (std::size_t r = 0; r < gradients_.size(); ++r) {
      const ParameterShard& shard = dag_.shards[r];
      for (std::int64_t i = 0; i < shard.rows * columns; ++i) {
        gradient(r)[i] = static_cast<float>(shard.row * columns + i + 1);
        parameter(r)[i] = -static_cast<float>(shard.row * columns + i + 1);
      }
      *loss(r) = 1;
    }
  }

  const HostMemory& memory() const { return *memory_; }
  float* gradient(std::size_t rank) { return memory_->tensor(gradients_[rank]).f32(); }
  float* parameter(std::size_t rank) { return memory_->tensor(parameters_[rank]).f32(); }
  float* loss(std::size_t rank) { return memory_->tensor(losses_[rank]).f32(); }
  DagBuilder& builder() { return builder_; }

 private:
  DagBuilder builder_;
  Dag dag_;
  std::optional<HostMemory> memory_;
  std::uint32_t world_ = 0;
  std::vector<BufferId> gradients_, parameters_, losses_;
  BufferId counts_ = no_id, biases_ = no_id;

  void update(RankIndex rank, BufferId parameter, BufferId gradient, std::int64_t offset, std::int64_t n) {
    const auto state = [&](std::int64_t size) { return builder_.buffer(rank, BufferKind::optimizer, DType::f32, Shape(size)); };
    builder_.kernel(OpKind::adam, AdamAttributes{}, {.name = "adam"},
                    std::array{builder_.view(gradient, offset, Shape(n)), state(1)},
                    std::array{builder_.view(parameter, offset, Shape(n))}, std::array{state(n), state(n), state(n)});
  }

  BufferId add_loss(RankIndex rank) {
    const auto token = [&] { return builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(1)); };
    const std::array reads{token(), token(), token()};
    const BufferId loss = token();
    builder_.kernel(OpKind::cross_entropy_loss, CrossEntropyAttributes{}, {.name = "loss"}, reads, std::array{loss});
    return loss;
  }
};

// Counts are no gradients, however large: an element of a gradient differs by as much as without them.
TEST(CompareWithBiases, CountsOfChoicesHideNoGradient) {
  Step reference, step;
  for (Step* each : {&reference, &step}) {
    each->add_rank(0, 4);
    each->add_biases();
    each->finish();
    each->fill_biases(1e6F);
  }
  step.gradient(0)[3] += 0.5F;
  const StepDifference difference = compare(step.memory(), reference.memory());
  ASSERT_EQ(difference.tensors.size(), 2U);
  EXPECT_EQ(difference.tensors[0].tensor, "router.bias");
  EXPECT_EQ(difference.tensors[0].gradient, 0);
  EXPECT_DOUBLE_EQ(difference.tensors[1].gradient, 0.5 / (rows * columns));
  step.fill_biases(1e6F + 1);
  EXPECT_DOUBLE_EQ(compare(step.memory(), reference.memory()).tensors[0].gradient, 1e-6);
}

class Compare : public testing::Test {
 protected:
  void SetUp() override {
    reference.add_rank(0, 4);
    reference.finish();
    *reference.loss(0) = 2;
    // Two data-parallel replicas of two tensor-parallel halves: the losses of tp rank 0 count, 1 + 1.
    for (int replica = 0; replica < 2; ++replica) {
      step.add_rank(0, 2, 0);
      step.add_rank(2, 2, 1);
    }
    step.finish();
  }
  Step reference, step;
  static constexpr double largest_gradient = rows * columns;  // elements are numbered from 1
};

TEST_F(Compare, EqualStepsDoNotDiffer) {
  const StepDifference difference = compare(step.memory(), reference.memory());
  ASSERT_EQ(difference.tensors.size(), 1U);
  EXPECT_EQ(difference.tensors[0].tensor, "w");
  EXPECT_EQ(difference.reference_loss, 2);
  EXPECT_EQ(difference.largest(), 0);
}

TEST_F(Compare, FindsOneChangedElementOfAnyReplicaAndSlice) {
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (const std::int64_t element : {0L, columns / 2, 2 * columns - 1}) {
      step.gradient(rank)[element] += 0.5F;
      step.parameter(rank)[element] -= 3;
      const StepDifference difference = compare(step.memory(), reference.memory());
      EXPECT_DOUBLE_EQ(difference.tensors[0].gradient, 0.5 / largest_gradient);
      EXPECT_DOUBLE_EQ(difference.tensors[0].weight, 3 / largest_gradient);
      EXPECT_DOUBLE_EQ(difference.largest(), 3 / largest_gradient);
      step.gradient(rank)[element] -= 0.5F;
      step.parameter(rank)[element] += 3;
    }
  }
}

TEST_F(Compare, LeavesPaddingOut) {
  step.gradient(1)[2 * columns] = 1e9F;
  step.parameter(1)[2 * columns + 1] = 1e9F;
  EXPECT_EQ(compare(step.memory(), reference.memory()).largest(), 0);
}

TEST_F(Compare, WhatIsNotANumberDiffersInfinitely) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  step.gradient(2)[0] = NAN;  // and finite differences after it
  step.gradient(2)[1] += 1;
  EXPECT_EQ(compare(step.memory(), reference.memory()).tensors[0].gradient, infinite);
  step.gradient(2)[0] = 1;
  reference.parameter(0)[7] = NAN;
  EXPECT_EQ(compare(step.memory(), reference.memory()).tensors[0].weight, infinite);
  EXPECT_EQ(compare(step.memory(), reference.memory()).largest(), infinite);
}

TEST_F(Compare, AddsTheLossesOfTheFirstTensorParallelRanks) {
  *step.loss(1) = 100;  // tp rank 1
  EXPECT_EQ(compare(step.memory(), reference.memory()).loss, 0);
  *step.loss(2) = 1.5F;
  EXPECT_DOUBLE_EQ(compare(step.memory(), reference.memory()).loss, 0.25);
  *step.loss(2) = NAN;
  EXPECT_EQ(compare(step.memory(), reference.memory()).largest(), std::numeric_limits<double>::infinity());
}

// Replicas that took steps of their own: replica 1's gradients are its own reference's, weights are the mean of both's.
TEST(CompareReplicas, HoldsEachAgainstItsOwnReferenceAndAllAgainstTheMean) {
  Step first, second, step;
  for (Step* reference : {&first, &second}) {
    reference->add_rank(0, 4);
    reference->finish();
  }
  step.add_rank(0, 4);
  step.add_rank(0, 4, 0, 1);
  step.finish();
  second.gradient(0)[5] += 2;
  second.parameter(0)[5] += 2;
  const std::array<const HostMemory*, 2> references{&first.memory(), &second.memory()};
  EXPECT_DOUBLE_EQ(compare(step.memory(), references).tensors[0].gradient, 2.0 / (rows * columns));
  EXPECT_DOUBLE_EQ(compare(step.memory(), references).tensors[0].weight, 1.0 / (rows * columns));
  step.gradient(1)[5] += 2;
  step.parameter(0)[5] += 1;
  step.parameter(1)[5] += 1;
  EXPECT_EQ(compare(step.memory(), references).largest(), 0);
  EXPECT_EQ(compare(step.memory(), references).reference_loss, 1);  // the mean of both
}

TEST(CompareCoverage, ThrowsWhenTheStepLeavesElementsOut) {
  Step reference, step;
  reference.add_rank(0, 4);
  step.add_rank(0, 2);
  step.add_rank(2, 1);
  reference.finish();
  step.finish();
  EXPECT_THROW(compare(step.memory(), reference.memory()), std::runtime_error);
  EXPECT_THROW(compare(reference.memory(), step.memory()), std::runtime_error);
}

TEST(CompareCoverage, ThrowsWhenAShardLeavesItsTensor) {
  Step reference, step;
  reference.add_rank(0, 4);
  step.add_rank(0, 4);
  step.builder().dag().shards[0].row = 1;
  reference.finish();
  step.finish();
  EXPECT_THROW(compare(step.memory(), reference.memory()), std::runtime_error);
}

TEST_F(Compare, GathersEachElementOnce) {
  const UnshardedState state = gather_unsharded(step.memory());
  ASSERT_EQ(state.weights.size(), 1U);
  const UnshardedTensor &weight = state.weights.at("w"), &gradient = state.gradients.at("w");
  EXPECT_EQ(weight.rows, rows);
  EXPECT_EQ(weight.columns, columns);
  ASSERT_EQ(weight.values.size(), static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < weight.values.size(); ++i) {
    EXPECT_EQ(gradient.values[i], static_cast<float>(i + 1));
    EXPECT_EQ(weight.values[i], -gradient.values[i]);
  }
  EXPECT_EQ(state.disagreement, 0);
}

TEST_F(Compare, GatheringTellsHowFarReplicasAreApart) {
  step.parameter(3)[columns] += 6;
  EXPECT_NEAR(gather_unsharded(step.memory()).disagreement, 6 / largest_gradient, 1e-6);
  step.gradient(2)[0] = NAN;
  EXPECT_TRUE(std::isinf(gather_unsharded(step.memory()).disagreement));
}

TEST(Gather, RefusesAParameterOfWhichRowsAreMissing) {
  Step step;
  step.add_rank(0, rows - 1);
  step.finish();
  EXPECT_THROW(gather_unsharded(step.memory()), std::runtime_error);
}

}  // namespace
}  // namespace tandem::host_compare_test
