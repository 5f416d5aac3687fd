#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_columns_test {
namespace {

struct Columns : testing::Test {
  Tensor whole = random_tensor(Shape(3, 2, 9), 1), a{Shape(3, 2, 4)}, b{Shape(3, 2, 2)}, c{Shape(3, 2, 3)};
};

TEST_F(Columns, AreCutInOrder) {
  run(OpKind::split_columns, std::monostate{}, {whole.host(), a.host(), b.host(), c.host()});
  EXPECT_EQ(a.values, slice_columns(whole, 9, 0, 4, a.shape).values);
  EXPECT_EQ(b.values, slice_columns(whole, 9, 4, 2, b.shape).values);
  EXPECT_EQ(c.values, slice_columns(whole, 9, 6, 3, c.shape).values);
}

TEST_F(Columns, JoiningUndoesSplitting) {
  run(OpKind::split_columns, std::monostate{}, {whole.host(), a.host(), b.host(), c.host()});
  Tensor joined(whole.shape);
  run(OpKind::join_columns, std::monostate{}, {a.host(), b.host(), c.host(), joined.host()});
  EXPECT_EQ(joined.values, whole.values);
}

TEST_F(Columns, MoveEachElementInAndOut) {
  const auto type = [](const Tensor& tensor) { return OperandType{tensor.shape, DType::bf16}; };
  const Bytes moved = 2 * 2 * whole.size();
  EXPECT_EQ(cost(OpKind::split_columns, std::monostate{}, {type(whole), type(a), type(b), type(c)}).bytes, moved);
  EXPECT_EQ(cost(OpKind::join_columns, std::monostate{}, {type(a), type(b), type(c), type(whole)}).bytes, moved);
}

TEST_F(Columns, RefusePartsThatAreNotTheWhole) {
  EXPECT_THROW(run(OpKind::split_columns, std::monostate{}, {whole.host(), a.host(), b.host()}), std::logic_error);
  EXPECT_THROW(run(OpKind::join_columns, std::monostate{}, {a.host(), b.host(), whole.host()}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_columns_test
