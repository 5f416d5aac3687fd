#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_embedding_test {
namespace {

constexpr std::int64_t s = 5, b = 2, h = 3, vocabulary = 12, shards = 4, local = vocabulary / shards;

struct EmbeddingTest : testing::Test {
  Ids ids = random_ids(Shape(s, b), vocabulary, 1);
  Tensor table = random_tensor(Shape(vocabulary, h), 2);
  Tensor out{Shape(s, b, h)};

  void forward() { run(OpKind::embedding, EmbeddingAttributes{}, {ids.host(), table.host(), out.host()}); }
};

TEST_F(EmbeddingTest, LooksUpRows) {
  forward();
  for (std::int64_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], table[ids[i / h] * h + i % h]);
}

TEST_F(EmbeddingTest, ShardsAddUpToTheWhole) {
  forward();
  Tensor sum(out.shape, 0.0F);
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    Tensor rows(Shape(local, h)), part(out.shape);
    std::copy_n(table.values.begin() + shard * local * h, local * h, rows.values.begin());
    run(OpKind::embedding, EmbeddingAttributes{.vocab_start = shard * local}, {ids.host(), rows.host(), part.host()});
    run(OpKind::add, std::monostate{}, {sum.host(), part.host(), sum.host()});
  }
  EXPECT_EQ(sum.values, out.values);
}

TEST_F(EmbeddingTest, BackwardEqualsFiniteDifferences) {
  Tensor dout = random_tensor(out.shape, 3), dtable(table.shape, 0.0F);
  run(OpKind::embedding_backward, EmbeddingAttributes{}, {ids.host(), dout.host(), dtable.host()});
  expect_gradient_of(
      [&] {
        forward();
        return dot(out, dout);
      },
      table, dtable);
}

TEST_F(EmbeddingTest, BackwardOfShardsAddsToTheirRowsOfTheWhole) {
  Tensor dout = random_tensor(out.shape, 3), whole(table.shape, 1.0F);
  run(OpKind::embedding_backward, EmbeddingAttributes{}, {ids.host(), dout.host(), whole.host()});
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    Tensor part(Shape(local, h), 1.0F);
    run(OpKind::embedding_backward, EmbeddingAttributes{.vocab_start = shard * local}, {ids.host(), dout.host(), part.host()});
    for (std::int64_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], whole[shard * local * h + i]);
  }
}

TEST_F(EmbeddingTest, TouchesOneRowPerTokenAndAtMostTheTable) {
  const OperandType tokens{ids.shape, DType::i32}, rows{out.shape, DType::bf16};
  const OperandType large{Shape(1000, h), DType::bf16}, small{Shape(2, h), DType::f32};
  EXPECT_EQ(cost(OpKind::embedding, EmbeddingAttributes{}, {tokens, large, rows}).bytes, s * b * (4 + 2 * h + 2 * h));
  EXPECT_EQ(cost(OpKind::embedding, EmbeddingAttributes{}, {tokens, small, rows}).bytes, s * b * (4 + 2 * h) + 4 * 2 * h);
  EXPECT_EQ(cost(OpKind::embedding_backward, EmbeddingAttributes{}, {tokens, rows, small}).bytes,
            s * b * (4 + 2 * h) + 2 * 4 * 2 * h);
}

}  // namespace
}  // namespace tandem::ops_embedding_test
