#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_pool_rows_test {
namespace {

TEST(PoolRows, AreMeansOfRowsThatLieTogether) {
  Tensor x(Shape(6, 2, 2)), y(Shape(2, 2, 2));
  std::iota(x.values.begin(), x.values.end(), 0.0F);  // element e of row r is 4 r + e: a mean is its middle row
  run(OpKind::pool_rows, {}, {x.host(), y.host()});
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t e = 0; e < 4; ++e) EXPECT_EQ(y[4 * row + e], static_cast<float>(4 * (3 * row + 1) + e));
}

TEST(PoolRows, BackwardEqualsFiniteDifferences) {
  Tensor x = random_tensor(Shape(8, 1, 3), 1), y(Shape(2, 1, 3)), dy = random_tensor(y.shape, 2), dx(x.shape);
  run(OpKind::pool_rows_backward, {}, {dy.host(), dx.host()});
  const auto loss = [&] {
    run(OpKind::pool_rows, {}, {x.host(), y.host()});
    return dot(y, dy);
  };
  expect_gradient_of(loss, x, dx);
}

TEST(PoolRows, MovesEachOperandOnce) {
  const OperandType x{Shape(8, 1, 3), DType::bf16}, y{Shape(2, 1, 3), DType::bf16};
  EXPECT_EQ(cost(OpKind::pool_rows, {}, {x, y}).bytes, 2 * (24 + 6));
  EXPECT_EQ(cost(OpKind::pool_rows_backward, {}, {y, x}).bytes, 2 * (24 + 6));
}

}  // namespace
}  // namespace tandem::ops_pool_rows_test
