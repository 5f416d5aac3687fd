#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_split_heads_test {
namespace {

constexpr std::int64_t s = 4, b = 2, d = 6;
constexpr Positions zigzag{.start = {2, 12}, .length = {2, 2}};

struct Heads {
  SplitHeadsAttributes attributes;
  Tensor qkv, q, k, v;

  Heads(std::int32_t heads, std::int32_t kv_heads, bool rotate = true)
      : attributes{.heads = heads, .kv_heads = kv_heads, .rotate = rotate, .base = 100.0F, .positions = zigzag},
        qkv(random_tensor(Shape(s, b, (heads + 2 * kv_heads) * d), 1)),
        q(Shape(s, b, heads, d)),
        k(Shape(s, b, kv_heads, d)),
        v(Shape(s, b, kv_heads, d)) {}

  void split() { run(OpKind::split_heads, attributes, {qkv.host(), q.host(), k.host(), v.host()}); }
};

TEST(SplitHeads, WithoutRotationSlicesTheColumns) {
  Heads heads(4, 2, false);
  heads.split();
  EXPECT_EQ(heads.q.values, slice_columns(heads.qkv, 8 * d, 0, 4 * d, heads.q.shape).values);
  EXPECT_EQ(heads.k.values, slice_columns(heads.qkv, 8 * d, 4 * d, 2 * d, heads.k.shape).values);
  EXPECT_EQ(heads.v.values, slice_columns(heads.qkv, 8 * d, 6 * d, 2 * d, heads.v.shape).values);
}

// Pair i of a head is the complex number x[i] + j x[i + d/2]; its angle grows by position * base^(-2i/d).
TEST(SplitHeads, RotatesPairsByThePositionOfTheRow) {
  Heads heads(4, 2);
  heads.split();
  const std::array<int, 4> position{2, 3, 12, 13};
  for (std::int64_t row = 0; row < s * b; ++row)
    for (std::int64_t head = 0; head < 6; ++head)
      for (std::int64_t i = 0; i < d / 2; ++i) {
        const double angle = position[static_cast<std::size_t>(row / b)] * std::pow(100.0, -2.0 * static_cast<double>(i) / d);
        const double re = heads.qkv[(row * 8 + head) * d + i], im = heads.qkv[(row * 8 + head) * d + i + d / 2];
        const Tensor& out = head < 4 ? heads.q : heads.k;
        const std::int64_t at = head < 4 ? (row * 4 + head) * d + i : (row * 2 + head - 4) * d + i;
        EXPECT_NEAR(out[at], re * std::cos(angle) - im * std::sin(angle), 1e-6);
        EXPECT_NEAR(out[at + d / 2], re * std::sin(angle) + im * std::cos(angle), 1e-6);
      }
}

TEST(SplitHeads, BackwardEqualsFiniteDifferences) {
  Heads heads(2, 1);
  Tensor dq = random_tensor(heads.q.shape, 2), dk = random_tensor(heads.k.shape, 3), dv = random_tensor(heads.v.shape, 4);
  Tensor dqkv(heads.qkv.shape);
  run(OpKind::split_heads_backward, heads.attributes, {dq.host(), dk.host(), dv.host(), dqkv.host()});
  expect_gradient_of(
      [&] {
        heads.split();
        return dot(heads.q, dq) + dot(heads.k, dk) + dot(heads.v, dv);
      },
      heads.qkv, dqkv);
}

TEST(SplitHeads, QueriesMayComeApartFromKeysAndValues) {
  Heads fused(4, 2), apart(4, 2);
  fused.split();
  Tensor q = slice_columns(fused.qkv, 8 * d, 0, 4 * d, Shape(s, b, 4 * d));
  Tensor kv = slice_columns(fused.qkv, 8 * d, 4 * d, 4 * d, Shape(s, b, 4 * d));
  run(OpKind::split_heads, apart.attributes, {q.host(), kv.host(), apart.q.host(), apart.k.host(), apart.v.host()});
  EXPECT_EQ(apart.q.values, fused.q.values);
  EXPECT_EQ(apart.k.values, fused.k.values);
  EXPECT_EQ(apart.v.values, fused.v.values);

  Tensor dqkv(fused.qkv.shape), dq(q.shape), dkv(kv.shape);
  run(OpKind::split_heads_backward, fused.attributes, {fused.q.host(), fused.k.host(), fused.v.host(), dqkv.host()});
  run(OpKind::split_heads_backward, fused.attributes, {fused.q.host(), fused.k.host(), fused.v.host(), dq.host(), dkv.host()});
  EXPECT_EQ(dq.values, slice_columns(dqkv, 8 * d, 0, 4 * d, dq.shape).values);
  EXPECT_EQ(dkv.values, slice_columns(dqkv, 8 * d, 4 * d, 4 * d, dkv.shape).values);
}

TEST(SplitHeads, ShardsOfTheHeadsAreSlicesOfTheWhole) {
  Heads whole(4, 2);
  whole.split();
  for (std::int64_t shard = 0; shard < 2; ++shard) {
    Heads part(2, 1);
    const Tensor q = slice_columns(whole.qkv, 8 * d, shard * 2 * d, 2 * d, part.q.shape);
    const Tensor k = slice_columns(whole.qkv, 8 * d, (4 + shard) * d, d, part.k.shape);
    const Tensor v = slice_columns(whole.qkv, 8 * d, (6 + shard) * d, d, part.v.shape);
    for (std::int64_t row = 0; row < s * b; ++row)
      for (std::int64_t i = 0; i < d; ++i) {
        part.qkv[row * 4 * d + i] = q[row * 2 * d + i];
        part.qkv[row * 4 * d + d + i] = q[row * 2 * d + d + i];
        part.qkv[row * 4 * d + 2 * d + i] = k[row * d + i];
        part.qkv[row * 4 * d + 3 * d + i] = v[row * d + i];
      }
    part.split();
    EXPECT_EQ(part.q.values, slice_columns(whole.q, 4 * d, shard * 2 * d, 2 * d, part.q.shape).values);
    EXPECT_EQ(part.k.values, slice_columns(whole.k, 2 * d, shard * d, d, part.k.shape).values);
    EXPECT_EQ(part.v.values, slice_columns(whole.v, 2 * d, shard * d, d, part.v.shape).values);
  }
}

TEST(SplitHeads, MovesEachElementInAndOut) {
  Heads heads(4, 2);
  const OperandType qkv{heads.qkv.shape, DType::bf16}, q{heads.q.shape, DType::bf16}, kv{heads.k.shape, DType::bf16};
  EXPECT_EQ(cost(OpKind::split_heads, heads.attributes, {qkv, q, kv, kv}).bytes, 2 * 2 * s * b * 8 * d);
  EXPECT_EQ(cost(OpKind::split_heads_backward, heads.attributes, {q, kv, kv, qkv}).bytes, 2 * 2 * s * b * 8 * d);
  const OperandType half{Shape(s, b, 4 * d), DType::bf16};
  EXPECT_EQ(cost(OpKind::split_heads, heads.attributes, {half, half, q, kv, kv}).bytes, 2 * 2 * s * b * 8 * d);
  EXPECT_EQ(cost(OpKind::split_heads_backward, heads.attributes, {q, kv, kv, half, half}).bytes, 2 * 2 * s * b * 8 * d);
}

// What has been split already turns alike, and the way back is the way back.
TEST(Rotary, IsTheRotationOfSplitHeads) {
  for (const std::int32_t rotated : {0, 2, 4}) {
    Heads turned(4, 2), still(4, 2, false);
    turned.attributes.rotated = rotated;
    turned.split();
    still.split();
    Tensor q = still.q, k = still.k;
    run(OpKind::rotary, turned.attributes, {q.host(), k.host()});
    EXPECT_EQ(q.values, turned.q.values);
    EXPECT_EQ(k.values, turned.k.values);
    run(OpKind::rotary_backward, turned.attributes, {q.host(), k.host()});
    expect_close(q, still.q, 1e-6);
    expect_close(k, still.k, 1e-6);
  }
}

// The first elements of each head are a narrower head; the others stay.
TEST(Rotary, OfAShareTurnsTheFirstElements) {
  constexpr std::int32_t part = 4;
  Heads whole(1, 1);
  whole.attributes.rotated = part;
  whole.split();
  Tensor q(Shape(s, b, 1, part)), k(q.shape);
  for (std::int64_t row = 0; row < s * b; ++row)
    for (std::int64_t i = 0; i < part; ++i) {
      q[row * part + i] = whole.qkv[row * 3 * d + i];
      k[row * part + i] = whole.qkv[row * 3 * d + d + i];
    }
  SplitHeadsAttributes narrow = whole.attributes;
  narrow.rotated = 0;
  run(OpKind::rotary, narrow, {q.host(), k.host()});
  for (std::int64_t row = 0; row < s * b; ++row)
    for (std::int64_t i = 0; i < d; ++i) {
      EXPECT_EQ(whole.q[row * d + i], i < part ? q[row * part + i] : whole.qkv[row * 3 * d + i]);
      EXPECT_EQ(whole.k[row * d + i], i < part ? k[row * part + i] : whole.qkv[row * 3 * d + d + i]);
    }
}

TEST(Rotary, MovesBothTwice) {
  const Heads heads(4, 2);
  const OperandType q{heads.q.shape, DType::bf16}, k{heads.k.shape, DType::bf16};
  EXPECT_EQ(cost(OpKind::rotary, heads.attributes, {q, k}).bytes, 2 * 2 * (heads.q.size() + heads.k.size()));
}

}  // namespace
}  // namespace tandem::ops_split_heads_test
