#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_cast_test {
namespace {

const Shape shape(3, 2, 5);

TEST(Cast, CopiesTheValues) {
  Tensor x = random_tensor(shape, 1), by_row(shape), by_column(shape);
  run(OpKind::cast, std::monostate{}, {x.host(), by_row.host(), by_column.host()});
  EXPECT_EQ(by_row.values, x.values);
  EXPECT_EQ(by_column.values, x.values);
}

TEST(Cast, ReadsOnceAndWritesEachCopy) {
  const OperandType x{shape, DType::bf16}, y{shape, DType::f8};
  EXPECT_EQ(cost(OpKind::cast, std::monostate{}, {x, y}).bytes, 30 * (2 + 1));
  EXPECT_EQ(cost(OpKind::cast, std::monostate{}, {x, y, y}).bytes, 30 * (2 + 1 + 1));
}

TEST(Cast, KeepsTheShape) {
  Tensor x = random_tensor(shape, 1), y(Shape(3, 10));
  EXPECT_THROW(run(OpKind::cast, std::monostate{}, {x.host(), y.host()}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_cast_test
