#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/ops/narrow.h"
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

/// All finite numbers of a format that are not negative, in order, decoded from their bits: exponent 0 is subnormal.
std::vector<float> numbers_of(int exponent_bits, int mantissa_bits, int bias, int codes) {
  std::vector<float> numbers;
  for (int code = 0; code < codes; ++code) {
    const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    EXPECT_LT(exponent, 1 << exponent_bits);
    const double fraction = mantissa / std::pow(2, mantissa_bits);
    numbers.push_back(
        static_cast<float>(exponent == 0 ? fraction * std::pow(2, 1 - bias) : (1 + fraction) * std::pow(2, exponent - bias)));
  }
  return numbers;
}

struct Format {
  const char* name;
  NarrowFormat format;
  std::vector<float> numbers;
};

// e4m3 has no infinities, and one code that is no number; of e5m2 the largest exponent is for those; e2m1 has neither.
std::vector<Format> formats() {
  return {{"e4m3", e4m3_format, numbers_of(4, 3, 7, 127)},
          {"e5m2", e5m2_format, numbers_of(5, 2, 15, 124)},
          {"e2m1", e2m1_format, numbers_of(2, 1, 1, 8)}};
}

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Narrow, RoundsToTheNearestOfAllNumbersTiesToEven) {
  for (const auto& [name, format, numbers] : formats()) {
    EXPECT_EQ(numbers.back(), format.largest) << name;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(to_nearest(format, numbers[i]), numbers[i]) << name;
      EXPECT_EQ(to_nearest(format, -numbers[i]), -numbers[i]) << name;
      if (i + 1 == numbers.size()) continue;
      const float middle = (numbers[i] + numbers[i + 1]) / 2;  // exact in fp32
      EXPECT_EQ(to_nearest(format, middle), numbers[i + i % 2]) << name << " " << middle;
      EXPECT_EQ(to_nearest(format, std::nextafter(middle, -infinity)), numbers[i]) << name;
      EXPECT_EQ(to_nearest(format, std::nextafter(middle, infinity)), numbers[i + 1]) << name;
    }
    EXPECT_EQ(to_nearest(format, 2 * format.largest), format.largest) << name;
    EXPECT_EQ(to_nearest(format, -infinity), -format.largest) << name;
    EXPECT_TRUE(std::isnan(to_nearest(format, std::nanf("")))) << name;
  }
}

// Of 2^32 equally likely draws, as many go up as the share of the way that x is above the number below.
TEST(Narrow, RoundsUpAsOftenAsXIsFarFromTheNumberBelow) {
  for (const auto& [name, format, numbers] : formats()) {
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const float x = numbers[i] + (numbers[i + 1] - numbers[i]) / 4;
      EXPECT_EQ(to_either(format, x, (1U << 30U) - 256), numbers[i + 1]) << name;
      EXPECT_EQ(to_either(format, x, 1U << 30U), numbers[i]) << name;
      EXPECT_EQ(to_either(format, -x, 0xC0000000U - 256), -numbers[i]) << name;
      EXPECT_EQ(to_either(format, -x, 0xC0000000U), -numbers[i + 1]) << name;
      EXPECT_EQ(to_either(format, numbers[i], 0), numbers[i]) << name;  // never off a number of the format
    }
  }
}

TEST(Narrow, ScalesArePowersOfTwo) {
  EXPECT_EQ(power_not_below(1), 1);
  EXPECT_EQ(power_not_below(std::nextafter(1.0F, 2.0F)), 2);
  EXPECT_EQ(power_not_below(0.3F), 0.5F);
  EXPECT_EQ(power_not_below(0.25F), 0.25F);
}

/// By rows, and by columns.
std::pair<std::vector<float>, std::vector<float>> cast_of(Tensor x, const CastAttributes& attributes) {
  Tensor by_row(x.shape), by_column(x.shape);
  run(OpKind::cast, attributes, {x.host(), by_row.host(), by_column.host()});
  return {by_row.values, by_column.values};
}

// With one scale for all, a / 448: the largest number is exact, and every other within half of a step of its own size.
TEST(Cast, OfOneScaleKeepsTheLargestNumber) {
  Tensor x = random_tensor(Shape(8, 24), 7);
  const float largest = std::fabs(*std::ranges::max_element(x.values, {}, [](float v) { return std::fabs(v); }));
  const auto [by_row, by_column] = cast_of(x, {.to = NarrowType::e4m3, .scaling = Scaling::tensor});
  EXPECT_EQ(by_row, by_column);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const float step = std::max(std::fabs(x.values[i]) * 0x1p-3F, largest / 448 * 0x1p-9F);
    EXPECT_LE(std::fabs(by_row[i] - x.values[i]), 0.501F * step);
    if (std::fabs(x.values[i]) == largest) {
      EXPECT_FLOAT_EQ(by_row[i], x.values[i]);
    }
  }
}

// Row r of 32 columns holds 2^r in its first 32 and 2^-r in the others: powers of two, exact under scales of their own; one scale
// for a tensor that spans 2^40 would lose the smallest.
TEST(Cast, OfBlocksScalesEachByItself) {
  const std::int64_t rows = 20, columns = 64;
  Tensor x(Shape(rows, columns));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      x.values[static_cast<std::size_t>(r * columns + c)] = std::ldexp(1.0F, static_cast<int>(c < 32 ? r : -r));
  const auto [in_blocks, by_column] = cast_of(x, {.to = NarrowType::e4m3, .scaling = Scaling::blocks_32});
  EXPECT_EQ(in_blocks, x.values);
  EXPECT_NE(by_column, x.values);  // a column of 20 spans 2^19, beyond e4m3's 2^17
  const auto [whole, same] = cast_of(x, {.to = NarrowType::e4m3, .scaling = Scaling::tensor});
  EXPECT_EQ(whole.back(), 0);
}

// NVFP4 of sixteen numbers and sixteen times smaller ones: g = A / (6 448), e = a / (6 g) is 448 and 28, both of e4m3.
TEST(Cast, ToNvfp4HasScalesOfTwoLevels) {
  const std::vector<float> grid{0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.5F, -1, -1.5F, -2, -3, -4, -6, 0};
  Tensor x(Shape(2, 16));
  for (std::size_t i = 0; i < 16; ++i) {
    x.values[i] = 448 * grid[i];
    x.values[16 + i] = 28 * grid[i];
  }
  EXPECT_EQ(cast_of(x, {.to = NarrowType::e2m1, .scaling = Scaling::blocks_16}).first, x.values);
  // In squares both rows have the scale of the first: of the second's 28 g a step of 224 g leaves nothing but what rounds to it.
  const auto squares = cast_of(x, {.to = NarrowType::e2m1, .scaling = Scaling::squares_16}).first;
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(squares[16 + i], std::fabs(grid[i]) > 4 ? std::copysign(224.0F, grid[i]) : 0);
}

TEST(Cast, ScalesTensorsBelowEachOtherApart) {
  Tensor x = random_tensor(Shape(6, 8), 3);
  for (std::size_t i = 0; i < 16; ++i) x.values[i] *= 1024;
  const CastAttributes whole{.to = NarrowType::e4m3, .scaling = Scaling::tensor};
  CastAttributes apart = whole;
  apart.rows = {2, 0, 4};
  const auto together = cast_of(x, apart).first;
  Tensor first(Shape(2, 8)), second(Shape(4, 8));
  std::copy_n(x.values.begin(), 16, first.values.begin());
  std::copy_n(x.values.begin() + 16, 32, second.values.begin());
  std::vector<float> one_by_one = cast_of(first, whole).first;
  const std::vector<float> rest = cast_of(second, whole).first;
  one_by_one.insert(one_by_one.end(), rest.begin(), rest.end());
  EXPECT_EQ(together, one_by_one);
  EXPECT_NE(together, cast_of(x, whole).first);
  apart.rows = {2, 3};
  EXPECT_THROW(cast_of(x, apart), std::logic_error);
}

/// The sum over rows of the products of two columns.
double product(const std::vector<float>& a, const std::vector<float>& b, std::size_t columns, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t r = 0; r < a.size() / columns; ++r) sum += static_cast<double>(a[r * columns + i]) * b[r * columns + j];
  return sum;
}

// Columns that are zero but for one row spread evenly over their sixteen: +-1/4 of it, all of one size, which one scale holds
// exactly; and the products of columns stay what they were, as the transform is orthogonal. By rows nothing is transformed.
TEST(Cast, TransformsWhatIsMultipliedOverRows) {
  Tensor a(Shape(32, 2), 0.0F);
  a.values[2 * 5] = 4;
  a.values[2 * 20 + 1] = 8;
  const CastAttributes attributes{.to = NarrowType::e2m1, .scaling = Scaling::blocks_16, .transforms = true};
  const auto [by_row, by_column] = cast_of(a, attributes);
  for (std::size_t r = 0; r < 32; ++r) {
    EXPECT_FLOAT_EQ(std::fabs(by_column[2 * r]), r < 16 ? 1 : 0);
    EXPECT_FLOAT_EQ(std::fabs(by_column[2 * r + 1]), r < 16 ? 0 : 2);
  }
  EXPECT_FLOAT_EQ(by_row[2 * 5], 4);
  EXPECT_NEAR(product(by_column, by_column, 2, 0, 0), 16, 1e-5);
  EXPECT_NEAR(product(by_column, by_column, 2, 1, 1), 64, 1e-5);
  EXPECT_EQ(product(by_column, by_column, 2, 0, 1), 0);
}

// The mean over seeds is x: of n draws of numbers at most h apart it is off by less than five of its standard deviations of
// h / (2 sqrt(n)). Rounding to nearest is off by up to h / 2, always to one side.
TEST(Cast, RoundsGradientsAtRandomWithoutBias) {
  Tensor x(Shape(1, 16));
  for (std::size_t i = 0; i < 16; ++i) x.values[i] = 0.37F * static_cast<float>(i + 1);
  x.values[15] = 6;
  const int draws = 4096;
  std::vector<double> mean(16, 0.0);
  for (int seed = 0; seed < draws; ++seed) {
    const auto y = cast_of(x, {.to = NarrowType::e2m1, .scaling = Scaling::blocks_16, .stochastic = true, .seed = seed}).first;
    for (std::size_t i = 0; i < 16; ++i) mean[i] += y[i] / draws;
  }
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(mean[i], x.values[i], 5 * 2 / (2 * std::sqrt(double{draws}))) << i;
  const auto again = [&] {
    return cast_of(x, {.to = NarrowType::e2m1, .scaling = Scaling::blocks_16, .stochastic = true, .seed = 3}).first;
  };
  EXPECT_EQ(again(), again());
}

}  // namespace
}  // namespace tandem::ops_cast_test
