#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_adam_test {
namespace {

struct AdamTest : testing::Test {
  AdamAttributes attributes{.learning_rate = 0.01F, .weight_decay = 0.1F, .clip_norm = 1.0F};
  Tensor grad = random_tensor(Shape(3, 3), 1), norm_square{Shape(1), 0.25F};
  Tensor param{Shape(3, 3)}, master = random_tensor(Shape(3, 3), 2);
  Tensor m{Shape(3, 3), 0.0F}, v{Shape(3, 3), 0.0F};

  void step() {
    run(OpKind::adam, attributes, {grad.host(), norm_square.host(), param.host(), master.host(), m.host(), v.host()});
  }
};

// From zero moments, bias correction makes m_hat = c g and v_hat = (c g)^2: the first step goes by sign(g), whatever the betas.
TEST_F(AdamTest, FirstStepGoesBySignAndDecays) {
  const Tensor before = master;
  step();
  for (std::int64_t i = 0; i < grad.size(); ++i) {
    const double g = grad[i];
    EXPECT_NEAR(m[i], 0.1 * g, 1e-7);
    EXPECT_NEAR(v[i], 0.05 * g * g, 1e-7);
    EXPECT_NEAR(master[i], before[i] - 0.01 * (g / (std::abs(g) + 1e-8) + 0.1 * before[i]), 1e-7);
    EXPECT_EQ(param[i], master[i]);
  }
}

// A gradient norm of 4 against a limit of 1 scales the gradients by 1/4, so m by 1/4 and v by 1/16.
TEST_F(AdamTest, ClipsByTheGlobalNorm) {
  norm_square[0] = 16;
  step();
  for (std::int64_t i = 0; i < grad.size(); ++i) {
    EXPECT_NEAR(m[i], 0.1 * grad[i] / 4, 1e-8);
    EXPECT_NEAR(v[i], 0.05 * grad[i] * grad[i] / 16, 1e-8);
  }
}

TEST_F(AdamTest, DoesNotClipWithoutALimit) {
  norm_square[0] = 16;
  attributes.clip_norm = 0;
  step();
  for (std::int64_t i = 0; i < grad.size(); ++i) EXPECT_NEAR(m[i], 0.1 * grad[i], 1e-7);
}

TEST_F(AdamTest, ShowsANormThatIsNotANumber) {
  norm_square[0] = std::numeric_limits<float>::quiet_NaN();
  step();
  EXPECT_TRUE(std::isnan(param[0]));
}

// Algorithm 2 of Loshchilov & Hutter 2019 with one weight, in double precision.
TEST_F(AdamTest, SeveralStepsFollowTheScalarAlgorithm) {
  double weight = master[0], first = 0, second = 0;
  for (int t = 1; t <= 5; ++t) {
    attributes.step = t;
    grad[0] = 0.3F / static_cast<float>(t) - 0.1F;
    step();
    const double g = grad[0];
    first = 0.9 * first + 0.1 * g;
    second = 0.95 * second + 0.05 * g * g;
    const double corrected = first / (1 - std::pow(0.9, t)) / (std::sqrt(second / (1 - std::pow(0.95, t))) + 1e-8);
    weight -= 0.01 * (corrected + 0.1 * weight);
    EXPECT_NEAR(master[0], weight, 1e-6);
  }
}

// Mixed precision: gradient 4 and master, m, v 2 * 12 bytes, the bf16 parameter written: 30 bytes per weight, and the norm.
TEST_F(AdamTest, MovesThirtyBytesPerWeightInMixedPrecision) {
  const OperandType wide{Shape(1000), DType::f32}, narrow{Shape(1000), DType::bf16}, scalar{Shape(1), DType::f32};
  EXPECT_EQ(cost(OpKind::adam, attributes, {wide, scalar, narrow, wide, wide, wide}).bytes, 30 * 1000 + 4);
}

}  // namespace
}  // namespace tandem::ops_adam_test
