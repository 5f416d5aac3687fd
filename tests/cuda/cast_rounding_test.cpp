// Casts by the recipes' scales: what a GPU writes is what a host writes, to the last bit.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/cuda/module/kernel.h"
#include "runtime/cuda/module/number_types.h"
#include "runtime/ops/cast.h"

namespace tandem::studies::cast_rounding_test {
namespace {

struct Rounded {
  NarrowType to;
  Scaling scaling;
};

struct Matrix {
  std::int64_t rows, columns;
  std::vector<std::int32_t> of_tensors = {};
};

/// Magnitudes over many powers of two, some zeros, and whole blocks of zeros.
std::vector<float> numbers(const Matrix& matrix, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-8, 8);
  std::vector<float> x(static_cast<std::size_t>(matrix.rows * matrix.columns));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i / 64 % 7 == 3 || random() % 9 == 0 ? 0 : std::ldexp(normal(random), exponent(random));
  return x;
}

template <typename Element>
std::vector<Element> as(const std::vector<float>& x) {
  std::vector<Element> result;
  for (const float value : x) result.push_back(from_float<Element>(value));
  return result;
}
template <typename Element>
std::vector<float> as_floats(const std::vector<Element>& x) {
  std::vector<float> result;
  for (const Element value : x) result.push_back(to_float(value));
  return result;
}

template <typename Element>
constexpr DType type_of() {
  return std::is_same_v<Element, float> ? DType::f32 : DType::bf16;
}

/// Runs the cast on a host and, emulated, on a GPU that has x in `From` and writes in `To`.
template <typename From, typename To>
void expect_same_bits(const CastAttributes& attributes, const Matrix& matrix, const std::vector<float>& wanted) {
  const Shape shape(matrix.rows, matrix.columns);
  std::vector<From> x = as<From>(wanted);
  std::vector<float> host_x = as_floats(x), host_by_row(host_x.size(), -1), host_by_column(host_x.size(), -1);
  std::vector<To> by_row(x.size()), by_column(x.size());

  std::vector<HostTensor> on_host;
  std::vector<DeviceTensor> on_gpu;
  const auto operand = [&](std::vector<float>& host, auto& gpu, DType type) {
    on_host.push_back({host.data(), shape});
    on_gpu.push_back({.data = gpu.data(), .shape = shape, .dtype = type});
  };
  if (attributes.in_place) {
    operand(host_by_column, by_column, type_of<To>());
    operand(host_x, x, type_of<From>());
  } else {
    operand(host_x, x, type_of<From>());
    operand(host_by_row, by_row, type_of<To>());
    operand(host_by_column, by_column, type_of<To>());
  }
  operation(OpKind::cast).host(on_host, attributes);
  std::vector<OperandType> types;
  for (const DeviceTensor& tensor : on_gpu) types.push_back({tensor.shape, tensor.dtype});
  const DeviceOperation& cast = device_operation(OpKind::cast);
  std::vector<std::byte> scratch(cast.scratch(types, attributes));
  Queue queue{.stream = nullptr, .multiprocessors = 4, .scratch = scratch.data(), .scratch_bytes = scratch.size()};
  cast.kernel(queue, on_gpu, attributes);

  const auto same = [](const std::vector<float>& found, const std::vector<float>& expected) {
    return std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0;
  };
  if (attributes.in_place)
    EXPECT_TRUE(same(as_floats(x), as_floats(as<From>(host_x))));
  else
    EXPECT_TRUE(same(as_floats(by_row), as_floats(as<To>(host_by_row))));
  EXPECT_TRUE(same(as_floats(by_column), as_floats(as<To>(host_by_column))));
}

class CastByBlocks : public testing::TestWithParam<Rounded> {};

INSTANTIATE_TEST_SUITE_P(Recipes, CastByBlocks,
                         testing::Values(Rounded{NarrowType::e4m3, Scaling::tensor}, Rounded{NarrowType::e5m2, Scaling::tensor},
                                         Rounded{NarrowType::e4m3, Scaling::blocks_128},
                                         Rounded{NarrowType::e4m3, Scaling::squares_128},
                                         Rounded{NarrowType::e4m3, Scaling::blocks_32},
                                         Rounded{NarrowType::e2m1, Scaling::blocks_16},
                                         Rounded{NarrowType::e2m1, Scaling::squares_16}));

TEST_P(CastByBlocks, WritesTheHostsBits) {
  // Whole blocks, blocks that are cut at the end, less than one block, a single number, and tensors below each other.
  for (const Matrix& matrix : {Matrix{130, 136}, Matrix{5, 7}, Matrix{1, 1}, Matrix{67, 33, {16, 0, 33, 18}}}) {
    for (const auto& [stochastic, in_place] : {std::pair{false, false}, {true, false}, {false, true}}) {
      SCOPED_TRACE(testing::Message() << matrix.rows << " x " << matrix.columns << (stochastic ? ", at random" : "")
                                      << (in_place ? ", in place" : ""));
      const bool transforms = GetParam().scaling == Scaling::blocks_16;
      const CastAttributes attributes{.rows = matrix.of_tensors,
                                      .to = GetParam().to,
                                      .scaling = GetParam().scaling,
                                      .stochastic = stochastic,
                                      .transforms = transforms,
                                      .seed = 3,
                                      .in_place = in_place};
      const std::vector<float> x = numbers(matrix, 1);
      expect_same_bits<float, float>(attributes, matrix, x);
      expect_same_bits<Bf16, float>(attributes, matrix, x);
      expect_same_bits<Bf16, Bf16>(attributes, matrix, x);
      expect_same_bits<float, float>(attributes, matrix, std::vector<float>(x.size(), 0));
    }
  }
}

// e4m3 times a power of two fits into bf16: nothing is rounded twice.
TEST(CastByBlocks, IsExactInBf16WhereScalesArePowersOfTwo) {
  const Matrix matrix{64, 256};
  const std::vector<float> x = numbers(matrix, 2);
  for (const Scaling scaling : {Scaling::blocks_32, Scaling::blocks_128, Scaling::squares_128}) {
    const Shape shape(matrix.rows, matrix.columns);
    std::vector<float> from = x, to(x.size());
    cast_host(std::vector<HostTensor>{{from.data(), shape}, {to.data(), shape}},
              CastAttributes{.to = NarrowType::e4m3, .scaling = scaling});
    EXPECT_EQ(as_floats(as<Bf16>(to)), to);
  }
}

}  // namespace
}  // namespace tandem::studies::cast_rounding_test
