#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_elementwise_test {
namespace {

TEST(Add, AddsInPlaceToo) {
  Tensor a = random_tensor(Shape(3, 7), 1), b = random_tensor(Shape(21), 2), c(a.shape);
  run(OpKind::add, std::monostate{}, {a.host(), b.host(), c.host()});
  for (std::int64_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], a[i] + b[i]);
  run(OpKind::add, std::monostate{}, {a.host(), b.host(), a.host()});
  EXPECT_EQ(a.values, c.values);
}

TEST(Add, RejectsDifferentLengths) {
  Tensor a(Shape(3)), b(Shape(4));
  EXPECT_THROW(run(OpKind::add, std::monostate{}, {a.host(), b.host(), a.host()}), std::logic_error);
}

TEST(WeightedSum, AddsMultiplesInPlaceToo) {
  Tensor a = random_tensor(Shape(3, 7), 1), b = random_tensor(Shape(21), 2), c(a.shape);
  run(OpKind::weighted_sum, WeightedSumAttributes{2, -0.5F}, {a.host(), b.host(), c.host()});
  for (std::int64_t i = 0; i < c.size(); ++i) EXPECT_FLOAT_EQ(c[i], 2 * a[i] - 0.5F * b[i]);
  run(OpKind::weighted_sum, WeightedSumAttributes{2, -0.5F}, {a.host(), b.host(), a.host()});
  EXPECT_EQ(a.values, c.values);
}

TEST(Fill, WritesTheFactor) {
  Tensor x(Shape(5));
  run(OpKind::fill, ScaleAttributes{0.25F}, {x.host()});
  EXPECT_EQ(x.values, std::vector<float>(5, 0.25F));
}

TEST(Scale, Multiplies) {
  Tensor x = random_tensor(Shape(2, 9), 1), y(x.shape);
  run(OpKind::scale, ScaleAttributes{-0.5F}, {x.host(), y.host()});
  for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], -0.5F * x[i]);
}

// 1^2 + ... + n^2 = n (n+1) (2n+1) / 6, exact in fp32 for n = 100; 100 is no multiple of the sum's lanes.
TEST(SquareSum, AddsToItsResult) {
  Tensor x(Shape(100)), out(Shape(1), 7.0F);
  std::iota(x.values.begin(), x.values.end(), 1.0F);
  run(OpKind::square_sum, ScaleAttributes{1.0F}, {x.host(), out.host()});
  EXPECT_EQ(out[0], 7 + 100 * 101 * 201 / 6);
}

// In fp32, 2^24 + 1 = 2^24: a sum of 2^24 and many ones must not lose them.
TEST(SquareSum, KeepsSmallTermsBesideALargeOne) {
  Tensor x(Shape(1025), 1.0F), out(Shape(1), 0.0F);
  x[0] = 4096;
  run(OpKind::square_sum, ScaleAttributes{1.0F}, {x.host(), out.host()});
  EXPECT_EQ(out[0], 16777216.0F + 1024.0F);
}

TEST(Elementwise, MovesEachOperandOnceAndUpdatesTwice) {
  const OperandType x{Shape(10), DType::bf16}, wide{Shape(10), DType::f32}, scalar{Shape(1), DType::f32};
  EXPECT_EQ(cost(OpKind::add, std::monostate{}, {x, wide, wide}).bytes, 20 + 40 + 40);
  EXPECT_EQ(cost(OpKind::weighted_sum, WeightedSumAttributes{}, {x, wide, wide}).bytes, 20 + 40 + 40);
  EXPECT_EQ(cost(OpKind::fill, ScaleAttributes{}, {wide}).bytes, 40);
  EXPECT_EQ(cost(OpKind::scale, ScaleAttributes{}, {x, wide}).bytes, 20 + 40);
  EXPECT_EQ(cost(OpKind::square_sum, std::monostate{}, {x, scalar}).bytes, 20 + 2 * 4);
}

TEST(Softcap, IsItsFormulaAndItsGradientThatOfIt) {
  constexpr float cap = 1.5F;
  Tensor x = random_tensor(Shape(3, 5), 1), dout = random_tensor(x.shape, 2), y = x, dx = dout;
  const auto capped = [&] {
    Tensor result = x;
    run(OpKind::softcap, ScaleAttributes{cap}, {result.host()});
    return result;
  };
  y = capped();
  for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], cap * std::tanh(x[i] / cap), 1e-6);
  run(OpKind::softcap_backward, ScaleAttributes{cap}, {y.host(), dx.host()});
  expect_gradient_of([&] { return dot(capped(), dout); }, x, dx);
}

}  // namespace
}  // namespace tandem::ops_elementwise_test
