#include "runtime/cuda/fused_attention.h"

#include <gtest/gtest.h>

#include <array>

namespace tandem::fused_attention_test {
namespace {

struct Sizes {
  std::int64_t queries = 8, keys = 8;
  DType type = DType::bf16;
};

std::optional<FusedAttention> fused(const AttentionAttributes& attributes, const Sizes& sizes = {}) {
  const std::array operands{
      OperandType{Shape(sizes.queries, 2, 6, 16), sizes.type}, OperandType{Shape(sizes.keys, 2, 3, 16), sizes.type},
      OperandType{Shape(sizes.keys, 2, 3, 24), sizes.type}, OperandType{Shape(sizes.queries, 2, 6, 24), sizes.type},
      OperandType{Shape(2, 6, sizes.queries, 1), DType::f32}};
  return fused_attention(operands, attributes);
}

Positions run(std::int32_t start, std::int32_t length) { return {.start = {start, 0}, .length = {length, 0}}; }
Positions runs(std::int32_t first, std::int32_t second, std::int32_t length) {
  return {.start = {first, second}, .length = {length, length}};
}

AttentionAttributes causal(const Positions& queries, const Positions& keys) {
  return {.causal = true, .scale = 0.25F, .queries = queries, .keys = keys};
}

TEST(FusedAttention, TakesTheShapes) {
  const std::optional<FusedAttention> attention = fused({.causal = false, .queries = {}, .keys = {}}, {.queries = 5, .keys = 7});
  ASSERT_TRUE(attention.has_value());
  EXPECT_EQ(*attention, (FusedAttention{.micro_batch = 2,
                                        .heads = 6,
                                        .kv_heads = 3,
                                        .queries = 5,
                                        .keys = 7,
                                        .head_dim = 16,
                                        .value_dim = 24,
                                        .type = DType::bf16,
                                        .causal = false}));
}

TEST(FusedAttention, IsCausalOverTheSamePositions) {
  EXPECT_TRUE(fused(causal(run(0, 8), run(0, 8)))->causal);
  EXPECT_TRUE(fused(causal(run(64, 8), run(64, 8)))->causal);
}

// Both chunks of a zigzag: the second comes after the first, so that an index is before another just where its position is.
TEST(FusedAttention, IsCausalOverTwoAscendingChunks) {
  EXPECT_TRUE(fused(causal(runs(4, 24, 4), runs(4, 24, 4)))->causal);
  EXPECT_FALSE(fused(causal(runs(24, 4, 4), runs(24, 4, 4))).has_value());
}

TEST(FusedAttention, IsWholeWhereEveryKeyComesBeforeEveryQuery) {
  EXPECT_FALSE(fused(causal(run(8, 8), run(0, 8)))->causal);
  EXPECT_FALSE(fused(causal(runs(8, 24, 4), run(0, 8)))->causal);
  EXPECT_FALSE(fused(causal(run(7, 1), run(0, 8)), {.queries = 1})->causal);
}

TEST(FusedAttention, IsNoneWhereSomeKeysAreSeenAcrossChunks) {
  EXPECT_FALSE(fused(causal(runs(4, 24, 4), runs(0, 28, 4))).has_value());
  EXPECT_FALSE(fused(causal(run(0, 8), run(8, 8))).has_value());
  EXPECT_FALSE(fused(causal(run(4, 8), run(0, 8))).has_value());
}

TEST(FusedAttention, IsOfHalfPrecisionAlone) {
  const AttentionAttributes all{.causal = false, .queries = {}, .keys = {}};
  EXPECT_TRUE(fused(all, {.type = DType::f16}).has_value());
  EXPECT_FALSE(fused(all, {.type = DType::f32}).has_value());
}

TEST(FusedAttention, HasNoBackwardOfOneQueryAndOneKey) {
  FusedAttention attention{.queries = 1, .keys = 1};
  EXPECT_FALSE(libraries_have_backward(attention));
  attention.keys = 2;
  EXPECT_TRUE(libraries_have_backward(attention));
  attention = {.queries = 2, .keys = 1};
  EXPECT_TRUE(libraries_have_backward(attention));
}

// By definition: what a query sees, pair by pair.
TEST(FusedAttention, SeesWhatThePositionsSay) {
  const std::array some{run(0, 8), run(8, 8), run(3, 8), runs(0, 12, 4), runs(4, 8, 4), runs(12, 0, 4), runs(20, 28, 4)};
  int found = 0;
  for (const Positions& queries : some) {
    for (const Positions& keys : some) {
      const std::optional<FusedAttention> attention = fused(causal(queries, keys));
      if (!attention.has_value()) continue;
      ++found;
      for (std::int32_t q = 0; q < 8; ++q)
        for (std::int32_t k = 0; k < 8; ++k)
          EXPECT_EQ(keys.at(k) <= queries.at(q), !attention->causal || k <= q) << q << ' ' << k;
    }
  }
  EXPECT_GT(found, static_cast<int>(some.size()));
}

}  // namespace
}  // namespace tandem::fused_attention_test
