#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_mla_heads_test {
namespace {

constexpr std::int64_t s = 4, b = 2, heads = 3, nope = 5, rope = 4, value = 2;
const MlaHeadsAttributes attributes{.rope_dim = rope, .base = 100.0F, .positions = {.start = {2, 12}, .length = {2, 2}}};

struct MlaHeads : testing::Test {
  Tensor x = random_tensor(Shape(s, b, heads*(nope + rope)), 1), q{Shape(s, b, heads, nope + rope)};
  Tensor kv = random_tensor(Shape(s, b, heads*(nope + value)), 2), shared = random_tensor(Shape(s, b, rope), 3);
  Tensor k{Shape(s, b, heads, nope + rope)}, v{Shape(s, b, heads, value)};

  void queries() { run(OpKind::mla_queries, attributes, {x.host(), q.host()}); }
  void keys_values() { run(OpKind::mla_keys_values, attributes, {kv.host(), shared.host(), k.host(), v.host()}); }
};

/// Element `i` of the rotated run at `in`: pair (i, i + r/2) is a complex number whose angle grows by position * base^(-2i/r).
double rotated(const float* in, std::int64_t i, std::int64_t row) {
  const std::array<int, 4> position{2, 3, 12, 13};
  const std::int64_t pair = i % (rope / 2);
  const double angle =
      position[static_cast<std::size_t>(row / b)] * std::pow(100.0, -2.0 * static_cast<double>(pair) / static_cast<double>(rope));
  const double re = in[pair], im = in[pair + rope / 2];
  return i < rope / 2 ? re * std::cos(angle) - im * std::sin(angle) : re * std::sin(angle) + im * std::cos(angle);
}

TEST_F(MlaHeads, QueriesTurnTheirLastElements) {
  queries();
  for (std::int64_t at = 0; at < q.size(); ++at) {
    const std::int64_t i = at % (nope + rope), head = at / (nope + rope);
    const float* in = x.values.data() + head * (nope + rope);
    EXPECT_NEAR(q[at], i < nope ? in[i] : rotated(in + nope, i - nope, head / heads), 1e-6);
  }
}

TEST_F(MlaHeads, KeysShareTheirLastElements) {
  keys_values();
  for (std::int64_t head = 0; head < s * b * heads; ++head) {
    const float* in = kv.values.data() + head * (nope + value);
    for (std::int64_t i = 0; i < nope; ++i) EXPECT_EQ(k[head * (nope + rope) + i], in[i]);
    for (std::int64_t i = 0; i < rope; ++i)
      EXPECT_NEAR(k[head * (nope + rope) + nope + i], rotated(shared.values.data() + head / heads * rope, i, head / heads), 1e-6);
    for (std::int64_t i = 0; i < value; ++i) EXPECT_EQ(v[head * value + i], in[nope + i]);
  }
}

TEST_F(MlaHeads, BackwardEqualsFiniteDifferences) {
  Tensor dq = random_tensor(q.shape, 4), dk = random_tensor(k.shape, 5), dv = random_tensor(v.shape, 6);
  Tensor dx(x.shape), dkv(kv.shape), dshared(shared.shape);
  run(OpKind::mla_queries_backward, attributes, {dq.host(), dx.host()});
  run(OpKind::mla_keys_values_backward, attributes, {dk.host(), dv.host(), dkv.host(), dshared.host()});
  const auto of_queries = [&] {
    queries();
    return dot(q, dq);
  };
  const auto of_keys_values = [&] {
    keys_values();
    return dot(k, dk) + dot(v, dv);
  };
  expect_gradient_of(of_queries, x, dx);
  expect_gradient_of(of_keys_values, kv, dkv);
  expect_gradient_of(of_keys_values, shared, dshared);
}

/// Of one token at position 1, one head that is rotated whole, ones and then zeros: what each pair turned by.
std::vector<double> angles(std::int64_t width, const YarnAttributes& yarn) {
  Tensor x(Shape(1, 1, width)), turned(Shape(1, 1, 1, width));
  for (std::int64_t i = 0; i < width; ++i) x[i] = i < width / 2 ? 1 : 0;
  run(OpKind::mla_queries,
      MlaHeadsAttributes{.rope_dim = static_cast<std::int32_t>(width),
                         .base = 10000.0F,
                         .positions = {.start = {1, 0}, .length = {1, 0}},
                         .yarn = yarn},
      {x.host(), turned.host()});
  std::vector<double> found;
  for (std::int64_t i = 0; i < width / 2; ++i) found.push_back(std::atan2(turned[i + width / 2], turned[i]));
  return found;
}

// 32 pairs of base 10000 turn original / (2 pi 10000^(i/32)) times in the original positions, here 4096: pair i turns `t` times
// with i = 32 log(4096 / (2 pi t)) / log(10000). That is 10.5 for 32 turns and 22.5 for one: pairs up to 10 are as they are,
// those from 23 on turn 8 times slower, and of pair 10 + k the share k / 13 does.
TEST(Yarn, StretchesPairsThatTurnRarely) {
  const YarnAttributes yarn{.factor = 8, .original = 4096, .beta_fast = 32, .beta_slow = 1};
  const std::vector<double> plain = angles(64, {}), stretched = angles(64, yarn);
  ASSERT_EQ(plain.size(), 32U);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(plain[i], std::pow(10000.0, -static_cast<double>(i) / 32), 1e-6);
    const double share = std::clamp((static_cast<double>(i) - 10) / 13, 0.0, 1.0);
    EXPECT_NEAR(stretched[i], plain[i] * ((1 - share) + share / 8), 1e-6) << i;
  }
}

TEST_F(MlaHeads, MoveEachElementInAndOut) {
  const auto type = [](const Tensor& tensor) { return OperandType{tensor.shape, DType::bf16}; };
  EXPECT_EQ(cost(OpKind::mla_queries, attributes, {type(x), type(q)}).bytes, 2 * 2 * x.size());
  EXPECT_EQ(cost(OpKind::mla_keys_values, attributes, {type(kv), type(shared), type(k), type(v)}).bytes,
            2 * (kv.size() + shared.size() + k.size() + v.size()));
}

}  // namespace
}  // namespace tandem::ops_mla_heads_test
