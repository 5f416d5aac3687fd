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

TEST(Cast, CountsHalvesOfBytesAndScales) {
  const std::int64_t n = 4096;
  const auto bytes = [&](DType type, Scaling scaling) { return OperandType{Shape(n), type, scaling}.bytes(); };
  EXPECT_EQ(bytes(DType::f4, Scaling::none), n / 2);
  EXPECT_EQ(bytes(DType::f4, Scaling::blocks_16), n / 2 + n / 16 + 4);
  EXPECT_EQ(bytes(DType::f8, Scaling::tensor), n + 4);
  EXPECT_EQ(bytes(DType::f8, Scaling::blocks_32), n + n / 32);
  EXPECT_EQ(bytes(DType::f8, Scaling::blocks_128), n + 4 * n / 128);
  EXPECT_EQ(bytes(DType::f8, Scaling::squares_128), n + 4);  // a quarter of a block is one
  EXPECT_EQ(size_of(DType::f4, 5), 3);
  EXPECT_THROW(size_of(DType::f4), std::logic_error);
  const OperandType x{Shape(n), DType::bf16}, y{Shape(n), DType::f4, Scaling::blocks_16};
  EXPECT_EQ(cost(OpKind::cast, std::monostate{}, {x, y, y}).bytes, 2 * n + 2 * (n / 2 + n / 16 + 4));
}

TEST(Cast, KeepsTheShape) {
  Tensor x = random_tensor(shape, 1), y(Shape(3, 10));
  EXPECT_THROW(run(OpKind::cast, std::monostate{}, {x.host(), y.host()}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_cast_test
