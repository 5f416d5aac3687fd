// What all-to-alls and gathers of sequence parts need before and after them.

#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_sequence_exchange_test {
namespace {

Tensor counted(Shape shape) {
  Tensor tensor(shape);
  std::iota(tensor.values.begin(), tensor.values.end(), 0.0F);
  return tensor;
}

TEST(PackGroups, PutsTheGroupsOfHeadsOneAfterTheOther) {
  const std::int64_t s = 3, b = 2, heads = 4, d = 2, groups = 2;
  Tensor x = counted(Shape(s, b, heads, d)), y(Shape(groups * s, b, heads / groups, d)), back(x.shape);
  run(OpKind::pack_groups, GroupsAttributes{groups}, {x.host(), y.host()});
  for (std::int64_t row = 0; row < s * b; ++row)
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t i = 0; i < d; ++i)
        EXPECT_EQ(y[((head / 2 * s * b + row) * 2 + head % 2) * d + i], x[(row * heads + head) * d + i]);
  run(OpKind::unpack_groups, GroupsAttributes{groups}, {y.host(), back.host()});
  EXPECT_EQ(back.values, x.values);
}

TEST(PackGroups, RefusesHeadsThatDoNotDivide) {
  Tensor x = counted(Shape(1, 1, 3, 2)), y(x.shape);
  EXPECT_THROW(run(OpKind::pack_groups, GroupsAttributes{2}, {x.host(), y.host()}), std::logic_error);
}

/// `parts` of two ranks and four positions; every element of k and v names its position, v those from 100 on.
void expect_order(bool zigzag, const std::vector<float>& expected_parts) {
  const SequenceAttributes attributes{.ranks = 2, .zigzag = zigzag};
  Tensor k = counted(Shape(4, 1, 1, 1)), v(Shape(4, 1, 1, 2)), parts(Shape(12));
  for (std::int64_t i = 0; i < 8; ++i) {
    const std::int64_t row = i / 2;
    v[i] = static_cast<float>(100 + row);
  }
  run(OpKind::split_sequence, attributes, {k.host(), v.host(), parts.host()});
  EXPECT_EQ(parts.values, expected_parts);
  Tensor k_back(k.shape), v_back(v.shape);
  run(OpKind::join_sequence, attributes, {parts.host(), k_back.host(), v_back.host()});
  EXPECT_EQ(k_back.values, k.values);
  EXPECT_EQ(v_back.values, v.values);
}

TEST(JoinSequence, BringsContiguousPartsInOrder) { expect_order(false, {0, 1, 100, 100, 101, 101, 2, 3, 102, 102, 103, 103}); }

TEST(JoinSequence, BringsZigzagPartsInOrder) { expect_order(true, {0, 3, 100, 100, 103, 103, 1, 2, 101, 101, 102, 102}); }

TEST(SequenceExchange, MovesEachElementInAndOut) {
  const OperandType x{Shape(4, 1, 2, 8), DType::bf16}, both{Shape(128), DType::bf16};
  EXPECT_EQ(cost(OpKind::pack_groups, GroupsAttributes{2}, {x, x}).bytes, 2 * 2 * 64);
  EXPECT_EQ(cost(OpKind::unpack_groups, GroupsAttributes{2}, {x, x}).bytes, 2 * 2 * 64);
  EXPECT_EQ(cost(OpKind::join_sequence, SequenceAttributes{2, true}, {both, x, x}).bytes, 2 * 2 * 128);
  EXPECT_EQ(cost(OpKind::split_sequence, SequenceAttributes{2, true}, {x, x, both}).bytes, 2 * 2 * 128);
  EXPECT_THROW(cost(OpKind::join_sequence, SequenceAttributes{3, false}, {both, x, x}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_sequence_exchange_test
