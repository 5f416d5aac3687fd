#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_attention_merge_test {
namespace {

constexpr std::int64_t s = 6, b = 2, heads = 4, kv_heads = 2, d = 4;
constexpr Positions queries{.start = {4, 14}, .length = {3, 3}};
constexpr Positions early{.start = {0, 4}, .length = {2, 2}}, late{.start = {8, 12}, .length = {2, 2}};
constexpr Positions all_keys{.start = {0, 0}, .length = {8, 0}};

struct Output {
  Tensor out{Shape(s, b, heads, d)}, lse{Shape(b, heads, s)};
};

Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  Tensor part(Shape(count, tensor.shape[1], tensor.shape[2], tensor.shape[3]));
  const std::int64_t width = tensor.size() / tensor.shape[0];
  std::copy_n(tensor.values.begin() + first * width, count * width, part.values.begin());
  return part;
}

Output attend(Tensor& q, Tensor k, Tensor v, const Positions& keys, bool causal = true) {
  Output output;
  const AttentionAttributes attributes{.causal = causal, .scale = 0.5F, .queries = queries, .keys = keys};
  run(OpKind::attention, attributes, {q.host(), k.host(), v.host(), output.out.host(), output.lse.host()});
  return output;
}

void merge(Output part, Output& into) {
  run(OpKind::attention_merge, {}, {part.out.host(), part.lse.host(), into.out.host(), into.lse.host()});
}

TEST(AttentionMerge, BlocksOfKeysMergeIntoTheWhole) {
  Tensor q = random_tensor(Shape(s, b, heads, d), 1);
  const Tensor k = random_tensor(Shape(8, b, kv_heads, d), 2), v = random_tensor(Shape(8, b, kv_heads, d), 3);
  const Output whole = attend(q, k, v, all_keys, false);
  Output merged = attend(q, rows(k, 0, 3), rows(v, 0, 3), {}, false);
  merge(attend(q, rows(k, 3, 4), rows(v, 3, 4), {}, false), merged);
  merge(attend(q, rows(k, 7, 1), rows(v, 7, 1), {}, false), merged);
  expect_close(merged.out, whole.out);
  expect_close(merged.lse, whole.lse);
}

TEST(AttentionMerge, QueriesThatSeeNothingOfABlockKeepTheOther) {
  // The queries at 4 to 6 come before all late keys.
  Tensor q = random_tensor(Shape(s, b, heads, d), 1);
  const Tensor k = random_tensor(Shape(8, b, kv_heads, d), 2), v = random_tensor(Shape(8, b, kv_heads, d), 3);
  const Output first = attend(q, rows(k, 0, 4), rows(v, 0, 4), early), second = attend(q, rows(k, 4, 4), rows(v, 4, 4), late);
  Output forwards = first, backwards = second;
  merge(second, forwards);
  merge(first, backwards);
  expect_close(backwards.out, forwards.out);
  for (std::int64_t i = 0; i < 3 * b * heads * d; ++i) EXPECT_EQ(forwards.out[i], first.out[i]);
  EXPECT_NE(forwards.out[3 * b * heads * d], first.out[3 * b * heads * d]);
}

TEST(AttentionMerge, TwoBlindSidesStayBlind) {
  Output nothing;
  std::ranges::fill(nothing.out.values, 0.0F);
  std::ranges::fill(nothing.lse.values, -std::numeric_limits<float>::infinity());
  Output merged = nothing;
  merge(nothing, merged);
  EXPECT_EQ(merged.out.values, nothing.out.values);
  EXPECT_EQ(merged.lse.values, nothing.lse.values);
}

TEST(AttentionMerge, LargeLogarithmsDoNotOverflow) {
  Output a, c;
  std::ranges::fill(a.out.values, 1.0F);
  std::ranges::fill(a.lse.values, 500.0F);
  std::ranges::fill(c.out.values, 3.0F);
  std::ranges::fill(c.lse.values, 500.0F);
  merge(a, c);
  // The weights are exponentials of differences to a sum near 500, which fp32 holds to within 1.6e-5.
  for (const float value : c.out.values) EXPECT_NEAR(value, 2.0F, 2 * 1.6e-5);
  for (const float value : c.lse.values) EXPECT_FLOAT_EQ(value, 500 + std::log(2.0F));
}

TEST(AttentionMerge, ReadsBothSidesAndWritesOne) {
  const OperandType out{Shape(s, b, heads, d), DType::bf16}, lse{Shape(b, heads, s), DType::f32};
  EXPECT_EQ(cost(OpKind::attention_merge, {}, {out, lse, out, lse}).bytes, 3 * (2 * s * b * heads * d + 4 * s * b * heads));
  EXPECT_THROW(cost(OpKind::attention_merge, {}, {out, lse, out, out}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_attention_merge_test
