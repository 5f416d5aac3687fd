#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_norm_test {
namespace {

constexpr std::int64_t s = 3, b = 2, h = 11;

class Norm : public testing::TestWithParam<NormKind> {
 protected:
  NormAttributes attributes{.kind = GetParam(), .epsilon = 1e-5F};
  Tensor x = random_tensor(Shape(s, b, h), 1);
  Tensor weight = random_tensor(Shape(GetParam() == NormKind::layer ? 2 : 1, h), 2);
  Tensor y{x.shape};

  void forward() { run(OpKind::norm, attributes, {x.host(), weight.host(), y.host()}); }
};

INSTANTIATE_TEST_SUITE_P(Kinds, Norm, testing::Values(NormKind::rms, NormKind::layer),
                         [](const auto& kind) { return kind.param == NormKind::rms ? "rms" : "layer"; });

TEST_P(Norm, EqualsItsFormulaInDoublePrecision) {
  const bool layer = GetParam() == NormKind::layer;
  std::vector<double> expected;
  for (std::int64_t row = 0; row < s * b; ++row) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < h && layer; ++i) mean += x[row * h + i] / double{h};
    for (std::int64_t i = 0; i < h; ++i) variance += (x[row * h + i] - mean) * (x[row * h + i] - mean) / h;
    for (std::int64_t i = 0; i < h; ++i)
      expected.push_back(weight[i] * (x[row * h + i] - mean) / std::sqrt(variance + 1e-5) + (layer ? weight[h + i] : 0));
  }
  forward();
  expect_close(y, expected, 1e-6);
}

TEST_P(Norm, BackwardEqualsFiniteDifferences) {
  Tensor dy = random_tensor(y.shape, 3), dx(x.shape), dweight(weight.shape, 0.0F);
  run(OpKind::norm_backward, attributes, {x.host(), weight.host(), dy.host(), dx.host(), dweight.host()});
  const auto loss = [&] {
    forward();
    return dot(y, dy);
  };
  // 1/sqrt has large higher derivatives where the row is small: truncation, not rounding, sets this tolerance.
  expect_gradient_of(loss, x, dx, 1e-3);
  expect_gradient_of(loss, weight, dweight);
}

TEST_P(Norm, BackwardAddsToTheWeightGradient) {
  Tensor dy = random_tensor(y.shape, 3), dx(x.shape), once(weight.shape, 0.0F), added(weight.shape, 2.0F);
  run(OpKind::norm_backward, attributes, {x.host(), weight.host(), dy.host(), dx.host(), once.host()});
  run(OpKind::norm_backward, attributes, {x.host(), weight.host(), dy.host(), dx.host(), added.host()});
  for (std::int64_t i = 0; i < once.size(); ++i) EXPECT_NEAR(added[i], 2 + once[i], 1e-6);
}

TEST_P(Norm, MovesEachOperandOnceAndTheWeightGradientTwice) {
  const OperandType activation{x.shape, DType::bf16}, parameter{weight.shape, DType::bf16}, gradient{weight.shape, DType::f32};
  const Bytes activation_bytes = 2 * s * b * h, parameter_bytes = 2 * weight.size();
  EXPECT_EQ(cost(OpKind::norm, attributes, {activation, parameter, activation}).bytes, 2 * activation_bytes + parameter_bytes);
  EXPECT_EQ(cost(OpKind::norm_backward, attributes, {activation, parameter, activation, activation, gradient}).bytes,
            3 * activation_bytes + parameter_bytes + 2 * 4 * weight.size());
}

}  // namespace
}  // namespace tandem::ops_norm_test
