// What compresses gradients: top-k selections, signs, orthonormal factors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "runtime/ops/orthogonalize.h"
#include "runtime/ops/sign.h"
#include "runtime/ops/top_k.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_compression_test {
namespace {

std::vector<float> draw(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
  return numbers;
}

HostTensor tensor(std::vector<float>& numbers, const Shape& shape) { return {numbers.data(), shape}; }
HostTensor tensor(std::vector<float>& numbers) { return {numbers.data(), Shape(numbers.size())}; }

struct Selection {
  std::vector<float> values;
  std::vector<std::int32_t> indices;
};

Selection select(std::vector<float> x, std::size_t k, std::vector<float>& residual) {
  Selection made{std::vector<float>(k), std::vector<std::int32_t>(k)};
  const HostTensor operands[] = {tensor(x), tensor(made.values), {made.indices.data(), Shape(k)}, tensor(residual)};
  top_k_select_host(operands, {});
  return made;
}

TEST(TopKSelect, TakesTheLargestAndLeavesTheRest) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    constexpr std::size_t n = 500, k = 60;
    const std::vector<float> x = draw(n, seed), before = draw(n, seed + 10);
    std::vector<float> residual = before;
    const Selection made = select(x, k, residual);
    EXPECT_TRUE(std::ranges::is_sorted(made.indices));
    EXPECT_EQ(std::set(made.indices.begin(), made.indices.end()).size(), k);
    std::vector<float> sum(n);
    for (std::size_t i = 0; i < n; ++i) sum[i] = before[i] + x[i];
    float least = 10, left = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const auto at = static_cast<std::size_t>(made.indices[i]);
      EXPECT_EQ(made.values[i], sum[at]);
      EXPECT_EQ(residual[at], 0);
      least = std::min(least, std::abs(sum[at]));
      sum[at] = 0;
    }
    for (std::size_t i = 0; i < n; ++i) left = std::max(left, std::abs(sum[i]));
    EXPECT_GE(least, left);
    EXPECT_EQ(residual, sum);  // nothing is lost
  }
}

TEST(TopKSelect, TakesTheFirstOfEqualMagnitudes) {
  std::vector<float> residual(6, 0);
  const Selection made = select({1, -2, 2, -1, 1, 2}, 4, residual);
  EXPECT_EQ(made.indices, (std::vector<std::int32_t>{0, 1, 2, 5}));
  EXPECT_EQ(made.values, (std::vector<float>{1, -2, 2, 2}));
  EXPECT_EQ(residual, (std::vector<float>{0, 0, 0, -1, 1, 0}));
}

TEST(SparseSum, AddsUpSelections) {
  std::vector<float> values{1, 2, 4, 8, 16, 32}, y(6, 99);
  std::vector<std::int32_t> indices{0, 3, 3, 5, 0, 1};
  const HostTensor operands[] = {tensor(values, Shape(3, 2)), {indices.data(), Shape(3, 2)}, tensor(y)};
  sparse_sum_host(operands, {});
  EXPECT_EQ(y, (std::vector<float>{17, 32, 0, 6, 0, 8}));
}

struct Signs {
  std::vector<float> bytes, scales;
};

Signs compress(std::vector<float> x, std::int64_t parts, std::int64_t bytes, std::int64_t valid, std::vector<float>& residual) {
  Signs made{std::vector<float>(static_cast<std::size_t>(parts * bytes)), std::vector<float>(static_cast<std::size_t>(parts))};
  const HostTensor operands[] = {tensor(x), tensor(made.bytes, Shape(parts, bytes)), tensor(made.scales), tensor(residual)};
  sign_compress_host(operands, SignAttributes{valid});
  return made;
}

std::vector<float> expand(Signs signs, std::int64_t parts, std::size_t elements) {
  std::vector<float> y(elements);
  const auto bytes = static_cast<std::int64_t>(signs.bytes.size()) / parts;
  const HostTensor operands[] = {tensor(signs.bytes, Shape(parts, bytes)), tensor(signs.scales), tensor(y)};
  sign_expand_host(operands, {});
  return y;
}

// Parts of 16 elements, the last one of 5.
TEST(SignCompress, KeepsSignsMeanMagnitudesAndTheRest) {
  constexpr std::size_t n = 37, part = 16;
  const std::vector<float> x = draw(n, 4), before = draw(n, 5);
  std::vector<float> residual = before;
  const std::vector<float> y = expand(compress(x, 3, 2, n, residual), 3, n);
  for (std::size_t first = 0; first < n; first += part) {
    double sum = 0, travelled = 0;
    for (std::size_t i = first; i < std::min(n, first + part); ++i) {
      const float whole = before[i] + x[i];
      sum += std::abs(whole);
      travelled += std::abs(y[i]);
      EXPECT_EQ(y[i] >= 0, whole >= 0);
      EXPECT_NEAR(y[i] + residual[i], whole, 1e-6);
    }
    EXPECT_NEAR(travelled, sum, 1e-5);
  }
}

TEST(SignCompress, CountsNoPadding) {
  std::vector<float> residual(16, 7);
  std::fill_n(residual.begin(), 4, 0.0F);
  const Signs made = compress({1, -2, 3, -2, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50}, 2, 1, 4, residual);
  EXPECT_EQ(made.scales, (std::vector<float>{2, 0}));
  EXPECT_EQ(made.bytes, (std::vector<float>{0b11110101, 255}));
  std::vector<float> expected{-1, 0, 1, 0};
  expected.resize(16, 0.0F);
  EXPECT_EQ(residual, expected);
}

TEST(SignSum, AddsUpParts) {
  std::vector<float> bytes{0b00001111, 0b00110011}, scales{1, 10}, y(8);
  const HostTensor operands[] = {tensor(bytes, Shape(2, 1)), tensor(scales), tensor(y)};
  sign_sum_host(operands, {});
  EXPECT_EQ(y, (std::vector<float>{11, 11, -9, -9, 9, 9, -11, -11}));
}

using Matrix = std::vector<float>;

double column_product(const Matrix& a, const Matrix& b, std::size_t columns, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t row = 0; row < a.size() / columns; ++row) sum += double{a[row * columns + i]} * b[row * columns + j];
  return sum;
}

Matrix orthogonalized(Matrix p, std::size_t columns) {
  const HostTensor operands[] = {tensor(p, Shape(p.size() / columns, columns))};
  orthogonalize_host(operands, {});
  return p;
}

void expect_orthonormal(const Matrix& p, std::size_t columns) {
  for (std::size_t i = 0; i < columns; ++i)
    for (std::size_t j = 0; j <= i; ++j) EXPECT_NEAR(column_product(p, p, columns, i, j), i == j ? 1 : 0, 1e-6) << i << " " << j;
}

/// Whether P P^T leaves the columns of `a` as they are.
void expect_spans(const Matrix& p, const Matrix& a, std::size_t columns) {
  const std::size_t rows = a.size() / columns;
  for (std::size_t j = 0; j < columns; ++j) {
    std::vector<double> projected(rows, 0.0);
    for (std::size_t i = 0; i < columns; ++i) {
      const double along = column_product(p, a, columns, i, j);
      for (std::size_t row = 0; row < rows; ++row) projected[row] += along * p[row * columns + i];
    }
    for (std::size_t row = 0; row < rows; ++row) EXPECT_NEAR(projected[row], a[row * columns + j], 1e-5);
  }
}

TEST(Orthogonalize, MakesAnOrthonormalBasisOfTheSameSpan) {
  for (const auto& [rows, columns] : {std::pair<std::size_t, std::size_t>{1, 1}, {6, 6}, {50, 4}}) {
    const Matrix a = draw(rows * columns, static_cast<unsigned>(rows));
    const Matrix p = orthogonalized(a, columns);
    expect_orthonormal(p, columns);
    expect_spans(p, a, columns);
  }
}

// Of rank 2: columns 2 and 3 are sums of the first two, all of them 1e-12 long.
TEST(Orthogonalize, FillsUpWhatIsDependent) {
  constexpr std::size_t rows = 20, columns = 4;
  Matrix a = draw(rows * columns, 8);
  for (std::size_t row = 0; row < rows; ++row) {
    float* const of_row = a.data() + row * columns;
    of_row[2] = of_row[0] + of_row[1];
    of_row[3] = of_row[0] - 2 * of_row[1];
    for (std::size_t i = 0; i < columns; ++i) of_row[i] *= 1e-12F;
  }
  expect_orthonormal(orthogonalized(a, columns), columns);
  expect_orthonormal(orthogonalized(Matrix(rows * columns, 0.0F), columns), columns);
}

// Formulas in the headers.
TEST(Compression, MovesItsBytes) {
  const OperandType x{Shape(1000), DType::f32}, small{Shape(1000), DType::bf16};
  const OperandType values{Shape(10), DType::f32}, indices{Shape(10), DType::i32};
  EXPECT_EQ(cost(OpKind::top_k_select, {}, {x, values, indices, x}).bytes, 7 * 4000 + 80);
  EXPECT_EQ(cost(OpKind::sparse_sum, {}, {{Shape(5, 2), DType::f32}, {Shape(5, 2), DType::i32}, x}).bytes, 4080);
  const OperandType signs{Shape(5, 25), DType::u8}, scales{Shape(5), DType::f32};
  EXPECT_EQ(cost(OpKind::sign_compress, SignAttributes{1000}, {x, signs, scales, x}).bytes, 5 * 4000 + 125 + 20);
  EXPECT_EQ(cost(OpKind::sign_sum, {}, {signs, scales, {Shape(200), DType::bf16}}).bytes, 125 + 20 + 400);
  EXPECT_EQ(cost(OpKind::sign_expand, {}, {signs, scales, small}).bytes, 125 + 20 + 2000);
  EXPECT_EQ(cost(OpKind::orthogonalize, {}, {{Shape(100, 1), DType::f32}}).bytes, 100 * 2 * 4);
  EXPECT_EQ(cost(OpKind::orthogonalize, {}, {{Shape(100, 4), DType::f32}}).bytes, 100 * (8 + 60) * 4);
}

TEST(Compression, RefusesWhatDoesNotFit) {
  const OperandType x{Shape(1000), DType::f32}, some{Shape(10), DType::f32}, places{Shape(10), DType::i32};
  EXPECT_THROW(cost(OpKind::top_k_select, {}, {some, x, {Shape(1000), DType::i32}, some}), std::logic_error);
  EXPECT_THROW(cost(OpKind::top_k_select, {}, {x, some, places, some}), std::logic_error);
  const OperandType signs{Shape(5, 24), DType::u8}, scales{Shape(5), DType::f32};
  EXPECT_THROW(cost(OpKind::sign_compress, SignAttributes{1000}, {x, signs, scales, x}), std::logic_error);
  EXPECT_THROW(cost(OpKind::sign_expand, {}, {signs, scales, x}), std::logic_error);
  EXPECT_THROW(cost(OpKind::orthogonalize, {}, {{Shape(3, 4), DType::f32}}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_compression_test
