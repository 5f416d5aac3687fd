#include <gtest/gtest.h>

#include "runtime/ops/dropout.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_dropout_test {
namespace {

Positions run_of(std::int32_t start, std::int32_t length) { return {.start = {start, 0}, .length = {length, 0}}; }

struct Dropped {
  Tensor y, mask;
};

Dropped drop(Tensor x, std::vector<std::int32_t> numbers, const DropoutAttributes& attributes) {
  Dropped result{Tensor(x.shape), Tensor(x.shape)};
  Ids sequences(Shape(1, static_cast<std::int64_t>(numbers.size())));
  sequences.values = std::move(numbers);
  run(OpKind::dropout, attributes, {x.host(), sequences.host(), result.y.host(), result.mask.host()});
  return result;
}

// Of n elements that are kept with probability q, the share kept is within 4 sqrt(q (1 - q) / n) of q but once in 16,000 times.
TEST(Dropout, KeepsTheShareAndTheMean) {
  for (const float p : {0.1F, 0.5F, 0.9F}) {
    const Tensor x(Shape(64, 4, 256), 1.0F);
    const Dropped d = drop(x, {0, 1, 2, 3}, {.probability = p, .stream = 3, .rows = run_of(0, 64)});
    double kept = 0, sum = 0;
    for (std::int64_t i = 0; i < d.y.size(); ++i) {
      kept += d.mask[i];
      sum += d.y[i];
      ASSERT_FLOAT_EQ(d.y[i], d.mask[i] / (1 - p));
    }
    const double n = static_cast<double>(x.size()), spread = 4 * std::sqrt(p * (1 - p) / n);
    EXPECT_NEAR(kept / n, 1 - p, spread);
    EXPECT_NEAR(sum / n, 1, spread / (1 - p));
  }
}

// Of columns that share a hash, as of all others, both are kept with probability q^2: 4 standard deviations, as above.
TEST(Dropout, NeighboursAreDrawnApart) {
  constexpr float q = 0.6F;
  constexpr std::int64_t rows = 2048, columns = 64;
  const Dropped d =
      drop(Tensor(Shape(rows, 1, columns), 1.0F), {5}, {.probability = 1 - q, .stream = 2, .rows = run_of(0, rows)});
  for (std::int64_t place = 0; place < 4; ++place)
    for (std::int64_t distance = 1; distance < 8; ++distance) {
      double both = 0, pairs = 0;
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = place; column + distance < columns; column += 4, ++pairs)
          both += d.mask[row * columns + column] * d.mask[row * columns + column + distance];
      EXPECT_NEAR(both / pairs, q * q, 4 * std::sqrt(q * q * (1 - q * q) / pairs)) << place << " and " << distance;
    }
}

// 1 / 65536 is dropped of what is asked to be dropped half as seldom, and all but so much at most.
TEST(Dropout, ProbabilitiesAreWholeSharesOf65536) {
  const Shape shape(1, 1, 8), one(1, 1);
  const auto dropped = [&](float p) { return mask_of(shape, one, {.probability = p, .rows = run_of(0, 1)}).dropped; };
  EXPECT_EQ(dropped(0), 0U);
  EXPECT_EQ(dropped(0x1p-17F), 0x10000U);
  EXPECT_EQ(dropped(0.5F), 0x80000000U);
  EXPECT_EQ(dropped(0x1.fffffep-1F), 0xFFFF0000U);
}

TEST(Dropout, OfNothingKeepsAll) {
  const Tensor x = random_tensor(Shape(4, 2, 8), 1);
  EXPECT_EQ(drop(x, {0, 1}, {.rows = run_of(0, 4)}).y.values, x.values);
}

/// Elements of `part` [rows,b,width] from those of `whole`.
TEST(Dropout, OfAPartIsThatOfTheWhole) {
  const Tensor whole = random_tensor(Shape(16, 3, 8), 5);
  const DropoutAttributes attributes{.probability = 0.4F, .stream = 7, .rows = run_of(0, 16)};
  const Dropped all = drop(whole, {10, 11, 12}, attributes);
  DropoutAttributes of_part = attributes;
  of_part.rows = {.start = {2, 12}, .length = {2, 2}};  // a zigzag rank's
  Tensor part(Shape(4, 1, 8));
  const std::int64_t rows[] = {2, 3, 12, 13};
  const auto place = [&](std::int64_t i) { return (rows[i / 8] * 3 + 1) * 8 + i % 8; };
  for (std::int64_t i = 0; i < part.size(); ++i) part[i] = whole[place(i)];
  const Dropped mine = drop(part, {11}, of_part);
  for (std::int64_t i = 0; i < part.size(); ++i) EXPECT_EQ(mine.y[i], all.y[place(i)]);
}

TEST(Dropout, OfSomeHeadsIsThatOfAll) {
  const Tensor whole = random_tensor(Shape(2, 6, 4, 4), 5);
  const DropoutAttributes attributes{.probability = 0.5F, .stream = 1, .rows = run_of(0, 4)};
  const Dropped all = drop(whole, {4, 9}, attributes);
  DropoutAttributes of_part = attributes;
  of_part.first_head = 2;
  Tensor part(Shape(1, 3, 4, 4));
  const auto place = [&](std::int64_t i) { return (6 + 2) * 16 + i; };
  for (std::int64_t i = 0; i < part.size(); ++i) part[i] = whole[place(i)];
  const Dropped mine = drop(part, {9}, of_part);
  for (std::int64_t i = 0; i < part.size(); ++i) EXPECT_EQ(mine.y[i], all.y[place(i)]);
}

TEST(Dropout, StreamsAndSequencesDrawApart) {
  const Tensor x(Shape(8, 1, 64), 1.0F);
  const DropoutAttributes attributes{.probability = 0.5F, .stream = 1, .rows = run_of(0, 8)};
  DropoutAttributes other = attributes;
  other.stream = 2;
  const auto mask = drop(x, {0}, attributes).mask.values;
  EXPECT_NE(mask, drop(x, {1}, attributes).mask.values);
  EXPECT_NE(mask, drop(x, {0}, other).mask.values);
  EXPECT_EQ(mask, drop(x, {0}, attributes).mask.values);
}

TEST(Dropout, AddsToTheResidualAndGoesBack) {
  const Tensor x = random_tensor(Shape(4, 2, 8), 1);
  Tensor in = x, residual = random_tensor(x.shape, 2), y(x.shape), mask(x.shape), dx(x.shape), dy = random_tensor(x.shape, 3);
  Ids sequences(Shape(1, 2));
  sequences.values = {3, 4};
  const DropoutAttributes attributes{.probability = 0.3F, .rows = run_of(0, 4)};
  run(OpKind::dropout_add, attributes, {in.host(), residual.host(), sequences.host(), y.host(), mask.host()});
  const Dropped alone = drop(x, {3, 4}, attributes);
  EXPECT_EQ(mask.values, alone.mask.values);
  for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], residual[i] + alone.y[i]);
  run(OpKind::dropout_add_backward, attributes, {dy.host(), mask.host(), dx.host()});
  for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(dx[i], dy[i] * mask[i] / 0.7F);
}

TEST(Dropout, MasksTakeAByte) {
  const OperandType x{Shape(4, 2, 8), DType::bf16}, mask{x.shape, DType::u8}, numbers{Shape(1, 2), DType::i32};
  const DropoutAttributes attributes{.probability = 0.3F, .rows = run_of(0, 4)};
  EXPECT_EQ(cost(OpKind::dropout, attributes, {x, numbers, x, mask}).bytes, 64 * (2 + 2 + 1) + 8);
  EXPECT_EQ(cost(OpKind::dropout_add, attributes, {x, x, numbers, x, mask}).bytes, 64 * (2 + 2 + 2 + 1) + 8);
  EXPECT_EQ(cost(OpKind::dropout_backward, attributes, {x, mask, x}).bytes, 64 * (2 + 1 + 2));
  EXPECT_THROW(cost(OpKind::dropout, {DropoutAttributes{.rows = run_of(0, 3)}}, {x, numbers, x, mask}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_dropout_test
