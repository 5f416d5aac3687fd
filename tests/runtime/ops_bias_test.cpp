#include <gtest/gtest.h>

#include "runtime/ops/bias.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_bias_test {
namespace {

// With y = x + 1 b^T, the gradient of the sum of y * dy is dy for x and its column sums for b.
TEST(Bias, IsAddedToEveryRowAndSummedOverThem) {
  const Shape shape(5, 3, 7);
  Tensor x = random_tensor(shape, 1), bias = random_tensor(Shape(7, 1), 2), dy = random_tensor(shape, 3),
         dbias(Shape(7, 1), 0.5F);
  const Tensor before = x;
  run(OpKind::add_bias, {}, {bias.host(), x.host()});
  run(OpKind::bias_gradient, {}, {dy.host(), dbias.host()});
  for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(x[i], before[i] + bias[i % 7]);
  for (std::int64_t column = 0; column < 7; ++column) {
    double sum = 0.5;
    for (std::int64_t row = 0; row < 15; ++row) sum += dy[row * 7 + column];
    EXPECT_NEAR(dbias[column], sum, 1e-6 * 15);
  }
}

TEST(Bias, MovesItsBytes) {
  const OperandType x{Shape(5, 3, 8), DType::bf16}, bias{Shape(8, 1), DType::bf16}, gradient{Shape(8, 1), DType::f32};
  EXPECT_EQ(cost(OpKind::add_bias, {}, {bias, x}).bytes, 2 * x.bytes() + bias.bytes());
  EXPECT_EQ(cost(OpKind::bias_gradient, {}, {x, gradient}).bytes, x.bytes() + 2 * gradient.bytes());
  EXPECT_THROW(cost(OpKind::add_bias, {}, {x, x}), std::logic_error);
}

// Each expert's rows see its own bias, an expert without rows none; and its gradient is the sum of these.
TEST(Bias, OfExpertsGoesToTheirRows) {
  constexpr std::int64_t columns = 3;
  const GroupedGemmAttributes of_experts{.rows = {2, 0, 3}};
  Tensor bias = random_tensor(Shape(3 * columns, 1), 1), x = random_tensor(Shape(5, columns), 2), dbias(bias.shape, 1.0F);
  const Tensor before = x;
  run(OpKind::add_bias, of_experts, {bias.host(), x.host()});
  const auto expert_of = [](std::int64_t row) { return row < 2 ? 0 : 2; };
  for (std::int64_t i = 0; i < x.size(); ++i)
    EXPECT_FLOAT_EQ(x[i], before[i] + bias[expert_of(i / columns) * columns + i % columns]);
  run(OpKind::bias_gradient, of_experts, {x.host(), dbias.host()});
  for (std::int64_t expert = 0; expert < 3; ++expert)
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 1;  // what was there
      for (std::int64_t row = 0; row < 5; ++row)
        if (expert_of(row) == expert) sum += x[row * columns + column];
      EXPECT_NEAR(dbias[expert * columns + column], sum, 1e-6);
    }
}

}  // namespace
}  // namespace tandem::ops_bias_test
