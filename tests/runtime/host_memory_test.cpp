#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/contents/initial_values.h"
#include "runtime/dag/dag_builder.h"
#include "runtime/host/memory.h"

namespace tandem::host_memory_test {
namespace {

constexpr std::uint64_t seed = 7;

struct Block {
  std::int64_t row, column, rows, columns;
};

/// A DAG of one rank and no task, which holds one block of a tensor of 6 x 8.
Dag one_shard(const Block& block) {
  DagBuilder builder;
  const RankIndex rank = builder.add_rank({});
  const BufferId buffer = builder.buffer(rank, BufferKind::parameter, DType::bf16, Shape(block.rows, block.columns));
  builder.dag().shards.push_back({.buffer = buffer,
                                  .tensor = "mlp.up.weight",
                                  .tensor_rows = 6,
                                  .tensor_columns = 8,
                                  .row = block.row,
                                  .column = block.column,
                                  .rows = block.rows,
                                  .columns = block.columns});
  return builder.finish();
}

bool all_nan(const float* values, std::int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isnan(value); });
}

TEST(HostMemory, ParametersDoNotDependOnTheSharding) {
  const Dag unsharded = one_shard({0, 0, 6, 8});
  const HostMemory whole(unsharded, seed);
  for (const Block& block : {Block{0, 0, 3, 8}, Block{3, 0, 3, 8}, Block{0, 0, 6, 4}, Block{0, 4, 6, 4}, Block{2, 3, 3, 2}}) {
    const Dag sharded = one_shard(block);
    const HostMemory part(sharded, seed);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      for (std::int64_t j = 0; j < block.columns; ++j) {
        EXPECT_EQ(part.tensor(0).f32()[i * block.columns + j], whole.tensor(0).f32()[(block.row + i) * 8 + block.column + j]);
      }
    }
  }
}

TEST(HostMemory, ParametersDependOnTheSeed) {
  const Dag dag = one_shard({0, 0, 6, 8});
  const HostMemory one(dag, 1), two(dag, 2);
  for (int i = 0; i < 48; ++i) EXPECT_NE(one.tensor(0).f32()[i], two.tensor(0).f32()[i]);
}

TEST(InitialParameter, HasTheMeanAndDeviationOfItsKind) {
  constexpr int rows = 200, columns = 200;
  const auto moments = [](const InitialParameter& values) {
    double sum = 0, squares = 0;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        sum += values.at(i, j);
        squares += values.at(i, j) * values.at(i, j);
      }
    }
    const double mean = sum / (rows * columns);
    return std::array{mean, std::sqrt(squares / (rows * columns) - mean * mean)};
  };
  // Uniform over half-width w: deviation w / sqrt(3). 40,000 draws estimate the mean to 0.005 deviations: allow five times that;
  // they estimate the deviation to 0.4 %: allow 2 %.
  const auto [matrix_mean, matrix_deviation] = moments({seed, "mlp.up.weight", columns});
  EXPECT_NEAR(matrix_mean, 0, 0.025 / std::sqrt(columns));
  EXPECT_NEAR(matrix_deviation, 1 / std::sqrt(columns), 0.02 / std::sqrt(columns));
  const auto [norm_mean, norm_deviation] = moments({seed, "layers.0.attention_norm.weight", columns});
  EXPECT_NEAR(norm_mean, 1, 0.025 * 0.1);
  EXPECT_NEAR(norm_deviation, 0.1 / std::sqrt(3), 0.002);
  EXPECT_NEAR(moments({seed, "final_norm.bias", columns})[0], 0, 0.025 * 0.1);
}

TEST(HostMemory, TargetsAreTheNextTokens) {
  DagBuilder builder;
  const RankIndex rank = builder.add_rank({});
  const BufferId tokens = builder.buffer(rank, BufferKind::input, DType::i32, Shape(4, 2));
  const BufferId targets = builder.buffer(rank, BufferKind::input, DType::i32, Shape(4, 2));
  const BufferId positions = builder.buffer(rank, BufferKind::input, DType::i32, Shape(4, 2));
  // Zigzag: this rank holds the first and the last quarter of 8 positions.
  const Positions zigzag{.start = {0, 6}, .length = {2, 2}};
  builder.dag().inputs = {{tokens, InputShard::Content::tokens, 10, zigzag, 97},
                          {targets, InputShard::Content::targets, 10, zigzag, 97},
                          {positions, InputShard::Content::positions, 10, zigzag, 97}};
  const Dag dag = builder.finish();
  const HostMemory memory(dag, seed);
  const std::array<int, 4> global{0, 1, 6, 7};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j) {
      const int at = i * 2 + j;
      EXPECT_EQ(memory.tensor(tokens).i32()[at], initial_token(seed, 10 + j, global[i], 97));
      EXPECT_EQ(memory.tensor(targets).i32()[at], initial_token(seed, 10 + j, global[i] + 1, 97));
      EXPECT_EQ(memory.tensor(positions).i32()[at], global[i]);
    }
  }
}

TEST(InitialToken, CoversTheVocabularyAndNothingElse) {
  std::array<int, 11> seen{};
  for (int position = 0; position < 1000; ++position) ++seen.at(initial_token(seed, 3, position, 11));
  // Binomial(1000, 1/11): mean 91, deviation 9; six deviations.
  for (const int count : seen) EXPECT_NEAR(count, 91, 54);
}

/// A flat parameter of 10 elements, two of them padding, cut in two slices, the second of which this rank owns.
struct FlatParameter {
  DagBuilder builder;
  RankIndex rank = builder.add_rank({.world_rank = 0});
  BufferId whole = builder.buffer(rank, BufferKind::parameter, DType::bf16, Shape(10));
  BufferId weight = builder.view(whole, 0, Shape(2, 4));
  BufferId own = builder.view(whole, 5, Shape(5));
  BufferId activation = builder.buffer(rank, BufferKind::activation, DType::bf16, Shape(2, 4));
  CommunicatorId dp = builder.add_communicator({.name = "dp", .members = {0}, .layout = {}});
  std::array<BufferId, 6> adam_operands{};

  FlatParameter() {
    builder.dag().shards.push_back(
        {.buffer = weight, .tensor = "w", .tensor_rows = 2, .tensor_columns = 4, .rows = 2, .columns = 4});
  }
  void gather() { builder.collective(OpKind::all_gather, dp, {.name = "gather"}, own, whole); }
  void use() { builder.kernel(OpKind::scale, ScaleAttributes{}, {.name = "use"}, std::array{weight}, std::array{activation}); }
  void update() {
    const auto state = [&](BufferKind kind, std::int64_t n) { return builder.buffer(rank, kind, DType::f32, Shape(n)); };
    const auto optimizer = BufferKind::optimizer;
    adam_operands = {
        state(BufferKind::gradient, 5), state(optimizer, 1), own, state(optimizer, 5), state(optimizer, 5), state(optimizer, 5)};
    const std::span operands(adam_operands);
    builder.kernel(OpKind::adam, AdamAttributes{}, {.name = "adam"}, operands.first(2), operands.subspan(2, 1), operands.last(3));
  }
};

TEST(HostMemory, PaddingIsZeroAndTheRestUnset) {
  FlatParameter step;
  step.use();
  const Dag dag = step.builder.finish();
  const HostMemory memory(dag, seed);
  EXPECT_EQ(memory.tensor(step.whole).f32()[8], 0);
  EXPECT_EQ(memory.tensor(step.whole).f32()[9], 0);
  EXPECT_EQ(memory.tensor(step.weight).f32()[5], InitialParameter(seed, "w", 4).at(1, 1));
  EXPECT_TRUE(all_nan(memory.tensor(step.activation).f32(), 8));
}

TEST(HostMemory, AdamStartsFromTheParameterAndTheMomentsOfItsPlace) {
  FlatParameter step;
  step.update();
  const Dag dag = step.builder.finish();
  const HostMemory memory(dag, seed);
  const auto [gradient, norm, parameter, master, m, v] = step.adam_operands;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(memory.tensor(master).f32()[i], memory.tensor(step.whole).f32()[5 + i]);
    // Element 5 + i of a tensor of eight in rows of four, then padding, which stays zero.
    const bool padding = 5 + i >= 8;
    const float value = InitialParameter(seed, "w.momentum", 1).at((5 + i) / 4, (5 + i) % 4);
    EXPECT_FLOAT_EQ(memory.tensor(m).f32()[i], padding ? 0 : 1e-3F * value);
    EXPECT_FLOAT_EQ(memory.tensor(v).f32()[i], padding ? 0 : 1e-6F * (0.5F + value * value));
  }
  EXPECT_TRUE(all_nan(memory.tensor(gradient).f32(), 5));
  EXPECT_TRUE(all_nan(memory.tensor(norm).f32(), 1));
}

TEST(HostMemory, WhatIsGatheredBeforeItsUseArrivesAsTheOwnSlice) {
  FlatParameter step;
  step.gather();
  step.use();
  step.update();
  const Dag dag = step.builder.finish();
  const HostMemory memory(dag, seed);
  const float* whole = memory.tensor(step.whole).f32();
  EXPECT_TRUE(all_nan(whole, 5));
  EXPECT_EQ(whole[7], InitialParameter(seed, "w", 4).at(1, 3));
  EXPECT_EQ(memory.tensor(step.adam_operands[3]).f32()[2], whole[7]);
}

TEST(HostMemory, WhatIsGatheredForTheNextStepArrivesWhole) {
  FlatParameter step;
  step.use();
  step.update();
  step.gather();
  const Dag dag = step.builder.finish();
  const HostMemory memory(dag, seed);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(memory.tensor(step.whole).f32()[i], InitialParameter(seed, "w", 4).at(i / 4, i % 4));
}

}  // namespace
}  // namespace tandem::host_memory_test
