#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_split_norm_test {
namespace {

constexpr std::int64_t s = 3, b = 2, width = 10;
const SplitNormAttributes attributes{.width = width, .epsilon = 1e-3F};

/// Columns of the whole row, and what is made of them.
struct SplitPart {
  Tensor x, gate, weight, dy;
  Tensor squares{Shape(s, b)}, products{Shape(s, b)};
  Tensor y, dx, dgate, dweight;

  SplitPart(const SplitPart& whole, std::int64_t first, std::int64_t columns)
      : x(cut(whole.x, first, columns)),
        gate(cut(whole.gate, first, columns)),
        weight(slice_columns(whole.weight, width, first, columns, Shape(1, columns))),
        dy(cut(whole.dy, first, columns)),
        y(x.shape),
        dx(x.shape),
        dgate(x.shape),
        dweight(weight.shape, 1.0F) {}
  SplitPart()
      : x(random_tensor(Shape(s, b, width), 1)),
        gate(random_tensor(x.shape, 2)),
        weight(random_tensor(Shape(1, width), 3)),
        dy(random_tensor(x.shape, 4)),
        y(x.shape),
        dx(x.shape),
        dgate(x.shape),
        dweight(weight.shape, 1.0F) {}

  static Tensor cut(const Tensor& of, std::int64_t first, std::int64_t columns) {
    return slice_columns(of, width, first, columns, Shape(s, b, columns));
  }
  void sum_squares() { run(OpKind::split_norm_squares, std::monostate{}, {x.host(), squares.host()}); }
  void normalise() { run(OpKind::split_norm, attributes, {x.host(), squares.host(), weight.host(), gate.host(), y.host()}); }
  void sum_products() {
    run(OpKind::split_norm_products, attributes,
        {x.host(), squares.host(), weight.host(), gate.host(), dy.host(), products.host()});
  }
  void differentiate() {
    run(OpKind::split_norm_backward, attributes,
        {x.host(), squares.host(), weight.host(), gate.host(), dy.host(), products.host(), dx.host(), dgate.host(),
         dweight.host()});
  }
};

TEST(SplitNorm, EqualsItsFormula) {
  SplitPart one;
  one.sum_squares();
  one.normalise();
  std::vector<double> expected;
  for (std::int64_t i = 0; i < one.x.size(); ++i) {
    double squares = 0;
    for (std::int64_t j = 0; j < width; ++j) squares += std::pow(one.x[i / width * width + j], 2);
    expected.push_back(one.weight[i % width] * one.x[i] / std::sqrt(squares / width + 1e-3) / (1 + std::exp(-one.gate[i])));
  }
  expect_close(one.y, expected, 1e-6);
}

TEST(SplitNorm, BackwardEqualsFiniteDifferences) {
  SplitPart one;
  one.sum_squares();
  one.sum_products();
  one.differentiate();
  const auto loss = [&] {
    one.sum_squares();
    one.normalise();
    return dot(one.y, one.dy);
  };
  expect_gradient_of(loss, one.x, one.dx, 1e-3);  // its fifth derivative is large where a row is short
  expect_gradient_of(loss, one.gate, one.dgate);
  for (float& value : one.dweight.values) value -= 1;  // to which it was added
  expect_gradient_of(loss, one.weight, one.dweight);
}

// Ranks with some columns each, that add up their sums in between, have what one has with all.
TEST(SplitNorm, InPartsIsTheWhole) {
  SplitPart whole;
  SplitPart parts[] = {{whole, 0, 3}, {whole, 3, 7}};
  const auto add_up = [&](Tensor SplitPart::*sums) {
    for (std::int64_t i = 0; i < s * b; ++i) {
      const float sum = (parts[0].*sums)[i] + (parts[1].*sums)[i];
      (parts[0].*sums)[i] = (parts[1].*sums)[i] = sum;
    }
  };
  whole.sum_squares();
  for (SplitPart& part : parts) part.sum_squares();
  add_up(&SplitPart::squares);
  whole.sum_products();
  for (SplitPart& part : parts) part.sum_products();
  add_up(&SplitPart::products);
  whole.normalise();
  whole.differentiate();
  std::int64_t first = 0;
  for (SplitPart& part : parts) {
    part.normalise();
    part.differentiate();
    const std::int64_t columns = part.weight.size();
    expect_close(part.y, SplitPart::cut(whole.y, first, columns), 1e-6);
    expect_close(part.dx, SplitPart::cut(whole.dx, first, columns), 1e-6);
    expect_close(part.dgate, SplitPart::cut(whole.dgate, first, columns), 1e-6);
    expect_close(part.dweight, slice_columns(whole.dweight, width, first, columns, Shape(1, columns)), 1e-6);
    first += columns;
  }
}

// Without a gate it is the norm of whole rows.
TEST(SplitNormWithoutGates, IsTheNorm) {
  const SplitNormAttributes plain{.width = width, .epsilon = 1e-3F, .gated = false};
  const NormAttributes of_rows{.epsilon = 1e-3F};
  SplitPart one;
  Tensor y(one.x.shape), dx(one.x.shape), dweight(one.weight.shape, 1.0F);
  one.sum_squares();
  run(OpKind::split_norm, plain, {one.x.host(), one.squares.host(), one.weight.host(), one.y.host()});
  run(OpKind::norm, of_rows, {one.x.host(), one.weight.host(), y.host()});
  expect_close(one.y, y, 1e-6);
  run(OpKind::split_norm_products, plain,
      {one.x.host(), one.squares.host(), one.weight.host(), one.dy.host(), one.products.host()});
  run(OpKind::split_norm_backward, plain,
      {one.x.host(), one.squares.host(), one.weight.host(), one.dy.host(), one.products.host(), one.dx.host(),
       one.dweight.host()});
  run(OpKind::norm_backward, of_rows, {one.x.host(), one.weight.host(), one.dy.host(), dx.host(), dweight.host()});
  expect_close(one.dx, dx, 1e-5);
  expect_close(one.dweight, dweight, 1e-5);
}

TEST(SplitNormWithoutGates, MovesEachOperandOnceAndUpdatesTwice) {
  const OperandType x{Shape(8, 2, 16), DType::bf16}, sums{Shape(8, 2), DType::f32}, weight{Shape(1, 16), DType::bf16};
  const OperandType gradient{weight.shape, DType::f32};
  const SplitNormAttributes plain{.width = 16, .gated = false};
  const Bytes row = 8 * 2 * 16 * 2, sum = 8 * 2 * 4;
  EXPECT_EQ(cost(OpKind::split_norm, plain, {x, sums, weight, x}).bytes, 2 * row + sum + 32);
  EXPECT_EQ(cost(OpKind::split_norm_products, plain, {x, sums, weight, x, sums}).bytes, 2 * row + 2 * sum + 32);
  EXPECT_EQ(cost(OpKind::split_norm_backward, plain, {x, sums, weight, x, sums, x, gradient}).bytes,
            3 * row + 2 * sum + 32 + 2 * 64);
}

TEST(SplitNorm, MovesEachOperandOnceAndUpdatesTwice) {
  const OperandType x{Shape(8, 2, 16), DType::bf16}, sums{Shape(8, 2), DType::f32}, weight{Shape(1, 16), DType::bf16};
  const OperandType gradient{weight.shape, DType::f32};
  const Bytes row = 8 * 2 * 16 * 2, sum = 8 * 2 * 4;
  EXPECT_EQ(cost(OpKind::split_norm_squares, std::monostate{}, {x, sums}).bytes, row + sum);
  EXPECT_EQ(cost(OpKind::split_norm, attributes, {x, sums, weight, x, x}).bytes, 3 * row + sum + 32);
  EXPECT_EQ(cost(OpKind::split_norm_products, attributes, {x, sums, weight, x, x, sums}).bytes, 3 * row + 2 * sum + 32);
  EXPECT_EQ(cost(OpKind::split_norm_backward, attributes, {x, sums, weight, x, x, sums, x, x, gradient}).bytes,
            5 * row + 2 * sum + 32 + 2 * 64);
}

}  // namespace
}  // namespace tandem::ops_split_norm_test
