#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_activation_test {
namespace {

constexpr std::int64_t s = 3, b = 2, f = 5;

class ActivationTest : public testing::TestWithParam<Activation> {
 protected:
  ActivationAttributes attributes{.kind = GetParam()};
  bool gated = is_gated(GetParam());
  Tensor x = random_tensor(Shape(s, b, gated ? 2 * f : f), 1);
  Tensor y{Shape(s, b, f)};

  void SetUp() override {
    for (float& value : x.values) value *= 3;
  }
  void forward() { run(OpKind::activation, attributes, {x.host(), y.host()}); }
};

const auto every_kind = testing::Values(Activation::swiglu, Activation::gelu, Activation::geglu, Activation::squared_relu,
                                        Activation::silu, Activation::quick_geglu);
std::string name_of_kind(const testing::TestParamInfo<Activation>& kind) {
  constexpr const char* names[] = {"swiglu", "gelu", "geglu", "squared_relu", "silu", "quick_geglu"};
  return names[static_cast<std::size_t>(kind.param)];
}

INSTANTIATE_TEST_SUITE_P(Kinds, ActivationTest, every_kind, name_of_kind);

TEST_P(ActivationTest, EqualsItsFormulaInDoublePrecision) {
  std::vector<double> expected;
  for (std::int64_t row = 0; row < s * b; ++row)
    for (std::int64_t i = 0; i < f; ++i) {
      const double in = x[row * (gated ? 2 * f : f) + i];
      const double swish = in / (1 + std::exp(-in));
      const double gelu = in / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (in + 0.044715 * in * in * in)));
      const double value = gated ? x[row * 2 * f + f + i] : 1;
      const double squared_relu = in > 0 ? in * in : 0;
      const double quick = in / (1 + std::exp(-1.702 * in));
      const double functions[] = {swish, gelu, gelu, squared_relu, swish, quick};
      expected.push_back(functions[static_cast<std::size_t>(GetParam())] * value);
    }
  forward();
  expect_close(y, expected, 1e-6);
}

TEST_P(ActivationTest, BackwardEqualsFiniteDifferences) {
  Tensor dy = random_tensor(y.shape, 2), dx(x.shape);
  run(OpKind::activation_backward, attributes, {x.host(), dy.host(), dx.host()});
  expect_gradient_of(
      [&] {
        forward();
        return dot(y, dy);
      },
      x, dx);
}

TEST_P(ActivationTest, MovesEachOperandOnce) {
  const OperandType in{x.shape, DType::bf16}, out{y.shape, DType::bf16};
  EXPECT_EQ(cost(OpKind::activation, attributes, {in, out}).bytes, 2 * (x.size() + y.size()));
  EXPECT_EQ(cost(OpKind::activation_backward, attributes, {in, out, in}).bytes, 2 * (2 * x.size() + y.size()));
}

class WeightedActivationTest : public ActivationTest {
 protected:
  Tensor weights = random_tensor(Shape(s, b, 1), 3);

  void weighted_forward() { run(OpKind::weighted_activation, attributes, {x.host(), weights.host(), y.host()}); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, WeightedActivationTest, every_kind, name_of_kind);

TEST_P(WeightedActivationTest, IsTheActivationTimesTheRowsWeights) {
  forward();
  std::vector<double> expected;
  for (std::int64_t i = 0; i < y.size(); ++i) expected.push_back(double{y[i]} * double{weights[i / f]});
  weighted_forward();
  expect_close(y, expected, 1e-6);
}

TEST_P(WeightedActivationTest, BackwardEqualsFiniteDifferences) {
  Tensor dy = random_tensor(y.shape, 2), dx(x.shape), dweights(weights.shape);
  run(OpKind::weighted_activation_backward, attributes, {x.host(), weights.host(), dy.host(), dx.host(), dweights.host()});
  const auto loss = [&] {
    weighted_forward();
    return dot(y, dy);
  };
  expect_gradient_of(loss, x, dx);
  expect_gradient_of(loss, weights, dweights);
}

// y is linear in the weights: the sum over a row of weight times dweight is dy y.
TEST_P(WeightedActivationTest, GradientOfTheWeightsIsThatOfAProduct) {
  Tensor dy = random_tensor(y.shape, 2), dx(x.shape), dweights(weights.shape);
  run(OpKind::weighted_activation_backward, attributes, {x.host(), weights.host(), dy.host(), dx.host(), dweights.host()});
  weighted_forward();
  EXPECT_NEAR(dot(weights, dweights), dot(y, dy), 1e-5);
}

TEST_P(WeightedActivationTest, MovesEachOperandOnce) {
  const OperandType in{x.shape, DType::bf16}, out{y.shape, DType::bf16}, per_row{weights.shape, DType::f32};
  const Bytes forward = 2 * (x.size() + y.size()) + 4 * s * b;
  EXPECT_EQ(cost(OpKind::weighted_activation, attributes, {in, per_row, out}).bytes, forward);
  EXPECT_EQ(cost(OpKind::weighted_activation_backward, attributes, {in, per_row, out, in, per_row}).bytes,
            forward + 2 * x.size() + 4 * s * b);
}

// As GptOssExperts of transformers: min(gate, 7), max(min(value, 7), -7) + 1.
class LimitedActivationTest : public testing::TestWithParam<Activation> {};
INSTANTIATE_TEST_SUITE_P(Kinds, LimitedActivationTest,
                         testing::Values(Activation::swiglu, Activation::geglu, Activation::quick_geglu), name_of_kind);

TEST_P(LimitedActivationTest, IsThatOfWhatTheLimitLeaves) {
  const ActivationAttributes limited{.kind = GetParam(), .limit = 1.5F, .offset = 1}, plain{.kind = GetParam()};
  Tensor x = random_tensor(Shape(s, b, 2 * f), 1), within(x.shape), y(Shape(s, b, f)), expected(y.shape);
  for (float& value : x.values) value *= 3;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const bool is_gate = i % (2 * f) < f;
    within[i] = is_gate ? std::min(x[i], 1.5F) : std::clamp(x[i], -1.5F, 1.5F) + 1;
  }
  run(OpKind::activation, limited, {x.host(), y.host()});
  run(OpKind::activation, plain, {within.host(), expected.host()});
  EXPECT_EQ(y.values, expected.values);
}

TEST_P(LimitedActivationTest, BackwardEqualsFiniteDifferences) {
  const ActivationAttributes limited{.kind = GetParam(), .limit = 1.5F, .offset = 1};
  Tensor x = random_tensor(Shape(s, b, 2 * f), 1), y(Shape(s, b, f)), dy = random_tensor(y.shape, 2), dx(x.shape);
  for (float& value : x.values) {
    value *= 3;
    if (std::abs(std::abs(value) - 1.5F) < 0.15F) value *= 1.5F;  // the differences do not reach over the kink
  }
  run(OpKind::activation_backward, limited, {x.host(), dy.host(), dx.host()});
  EXPECT_TRUE(std::ranges::any_of(dx.values, [](float value) { return value == 0; }));
  expect_gradient_of(
      [&] {
        run(OpKind::activation, limited, {x.host(), y.host()});
        return dot(y, dy);
      },
      x, dx);
}

// Both forms agree within 5e-4 everywhere: they differ most at |x| = 2.70, by 4.73e-4 (scan of the two formulas in steps of
// 1e-4).
TEST(Gelu, ApproximatesXTimesTheNormalDistribution) {
  Tensor x(Shape(121)), y(x.shape);
  for (std::int64_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i - 60) / 10;
  run(OpKind::activation, ActivationAttributes{.kind = Activation::gelu}, {x.host(), y.host()});
  for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i] * 0.5 * std::erfc(-x[i] / std::numbers::sqrt2), 5e-4);
}

}  // namespace
}  // namespace tandem::ops_activation_test
