#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/ops/operation.h"

namespace tandem {

/// A host operand that owns its elements. Results start as NaN, as in the executed step: what is read too early shows.
template <typename Element>
struct Owned {
  Shape shape;
  std::vector<Element> values;

  explicit Owned(Shape s, Element value = std::numeric_limits<Element>::quiet_NaN())
      : shape(s), values(static_cast<std::size_t>(s.elements()), value) {}

  HostTensor host() { return {values.data(), shape}; }
  Element& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  Element operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
  std::int64_t size() const { return shape.elements(); }
};
using Tensor = Owned<float>;
using Ids = Owned<std::int32_t>;

inline Tensor random_tensor(Shape shape, unsigned seed) {
  Tensor tensor(shape);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& value : tensor.values) value = uniform(generator);
  return tensor;
}

inline Ids random_ids(Shape shape, std::int32_t vocabulary, unsigned seed) {
  Ids ids(shape);
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> uniform(0, vocabulary - 1);
  for (std::int32_t& value : ids.values) value = uniform(generator);
  return ids;
}

/// Columns [first, first + count) of each row.
inline Tensor slice_columns(const Tensor& tensor, std::int64_t row_width, std::int64_t first, std::int64_t count, Shape shape) {
  Tensor result(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) result[i] = tensor[i / count * row_width + first + i % count];
  return result;
}

inline void run(OpKind kind, const OpAttributes& attributes, std::initializer_list<HostTensor> operands) {
  operation(kind).host({operands.begin(), operands.size()}, attributes);
}

inline OpCost cost(OpKind kind, const OpAttributes& attributes, std::initializer_list<OperandType> operands) {
  return operation(kind).cost({operands.begin(), operands.size()}, attributes);
}

inline double dot(const Tensor& a, const Tensor& b) {
  return std::inner_product(a.values.begin(), a.values.end(), b.values.begin(), 0.0, std::plus<>(),
                            [](double x, double y) { return x * y; });
}

/// Each element within `tolerance` of the largest expected one. fp32 rounds at 6e-8; sums of some hundred terms stay below 1e-5.
template <typename Expected>
void expect_close(const Tensor& actual, const std::vector<Expected>& expected, double tolerance = 1e-5) {
  ASSERT_EQ(actual.values.size(), expected.size());
  double largest = 0;
  for (const auto value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual.values[i], expected[i], tolerance * largest) << "element " << i;
}

inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance = 1e-5) {
  expect_close(actual, expected.values, tolerance);
}

/// Compares `gradient` with central differences of the loss, which reads `x` by reference.
///
/// The five-point stencil (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h errs by h^4/30 of the fifth derivative, at h = 1/16 below
/// 1e-6 of it, and by about 1.5 roundings of the fp32 forward pass over h, some 1e-5; hence the tolerance.
inline void expect_gradient_of(const std::function<double()>& loss, Tensor& x, const Tensor& gradient, double tolerance = 2e-4) {
  constexpr float h = 1.0F / 16;
  std::vector<double> differences;
  for (float& value : x.values) {
    const float original = value;
    const auto at = [&](float offset) {
      value = original + offset;
      return loss();
    };
    differences.push_back((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12.0 * h));
    value = original;
  }
  expect_close(gradient, differences, tolerance);
}

}  // namespace tandem
