#include <gtest/gtest.h>

#include <array>

#include "runtime/ops/muon.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_muon_test {
namespace {

const MuonAttributes settings{.learning_rate = 0.01F, .momentum = 0.95F, .weight_decay = 0.1F, .clip_norm = 1.0F, .scale = 3.0F};

// A gradient norm of 2 against a limit of 1 halves the gradients.
TEST(Muon, MomentumLooksAhead) {
  Tensor grad = random_tensor(Shape(3, 4), 1), square{Shape(1), 4.0F}, u{Shape(3, 4)}, momentum = random_tensor(Shape(3, 4), 2);
  const Tensor before = momentum;
  run(OpKind::muon_momentum, settings, {grad.host(), square.host(), u.host(), momentum.host()});
  for (std::int64_t i = 0; i < grad.size(); ++i) {
    const double g = grad[i] / 2.0, m = 0.95 * before[i] + g;
    EXPECT_NEAR(momentum[i], m, 1e-6);
    EXPECT_NEAR(u[i], g + 0.95 * m, 1e-6);
  }
}

TEST(Muon, UpdateDecaysAndSteps) {
  Tensor x = random_tensor(Shape(2, 5), 3), param{Shape(2, 5)}, master = random_tensor(Shape(2, 5), 4);
  const Tensor before = master;
  run(OpKind::muon_update, settings, {x.host(), param.host(), master.host()});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(master[i], before[i] - 0.01 * (3.0 * x[i] + 0.1 * before[i]), 1e-7);
    EXPECT_EQ(param[i], master[i]);
  }
}

/// Newton-Schulz on a matrix, as the lowering puts it together. `left`: A = X X^T.
Tensor orthogonalized(const Tensor& u, const Shape& shape, bool left) {
  Tensor square{Shape(1), 0.0F}, x{shape};
  Tensor in = u;
  run(OpKind::square_sum, ScaleAttributes{1.0F}, {in.host(), square.host()});
  run(OpKind::muon_normalize, {}, {in.host(), square.host(), x.host()});
  const std::int64_t n = left ? shape[0] : shape[1];
  for (int step = 0; step < newton_schulz_steps; ++step) {
    Tensor gram{Shape(n, n)}, gram_square{Shape(n, n)}, p{Shape(n, n)}, next{shape};
    run(OpKind::gemm, GemmAttributes{.transpose_a = !left, .transpose_b = left}, {x.host(), x.host(), gram.host()});
    run(OpKind::gemm, GemmAttributes{}, {gram.host(), gram.host(), gram_square.host()});
    run(OpKind::muon_polynomial, {}, {gram.host(), gram_square.host(), p.host()});
    if (left)
      run(OpKind::gemm, GemmAttributes{}, {p.host(), x.host(), next.host()});
    else
      run(OpKind::gemm, GemmAttributes{}, {x.host(), p.host(), next.host()});
    x = next;
  }
  return x;
}

// On a diagonal matrix each singular value goes its own way: s -> a s + b s^3 + c s^5, five times, from s / norm on.
TEST(Muon, IterationIsThePolynomialOfEachSingularValue) {
  const std::array<double, 3> values{5, 1, 0.02};
  for (const bool left : {true, false}) {
    Tensor u{Shape(3, 3), 0.0F};
    double square = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
      u[4 * i] = static_cast<float>(values[static_cast<std::size_t>(i)]);
      square += values[static_cast<std::size_t>(i)] * values[static_cast<std::size_t>(i)];
    }
    Tensor x = orthogonalized(u, Shape(3, 3), left);
    for (std::int64_t i = 0; i < 9; ++i) {
      if (i % 4 != 0) {
        EXPECT_EQ(x[i], 0);
        continue;
      }
      double s = values[static_cast<std::size_t>(i / 4)] / std::sqrt(square);
      for (int step = 0; step < 5; ++step) s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
      EXPECT_NEAR(x[i], s, 1e-5);
    }
    EXPECT_NEAR(x[0], 1, 0.35);  // Jordan et al.: singular values end between 0.7 and 1.2, or a little beyond
    EXPECT_NEAR(x[4], 1, 0.35);
  }
}

// Both sides' Gram matrices give the same, and so does the transpose.
TEST(Muon, SidesAgree) {
  const Shape shape(6, 4);
  const Tensor u = random_tensor(shape, 5);
  Tensor left = orthogonalized(u, shape, true), right = orthogonalized(u, shape, false);
  Tensor transposed{Shape(4, 6)};
  for (std::int64_t i = 0; i < 24; ++i) transposed[i % 4 * 6 + i / 4] = u[i];
  Tensor of_transposed = orthogonalized(transposed, Shape(4, 6), true);
  for (std::int64_t i = 0; i < 24; ++i) {
    EXPECT_NEAR(left[i], right[i], 1e-4);
    EXPECT_NEAR(right[i], of_transposed[i % 4 * 6 + i / 4], 1e-4);
  }
}

// Gradient 4, norm 4 in all, direction 2, momentum read and written; direction 2, weight 2, master read and written.
TEST(Muon, MovesTheBytesOfItsOperands) {
  const OperandType wide{Shape(20, 50), DType::f32}, narrow{Shape(20, 50), DType::bf16}, scalar{Shape(1), DType::f32};
  const OperandType square{Shape(50, 50), DType::bf16};
  EXPECT_EQ(cost(OpKind::muon_momentum, settings, {wide, scalar, narrow, wide}).bytes, (4 + 2 + 8) * 1000 + 4);
  EXPECT_EQ(cost(OpKind::muon_normalize, {}, {narrow, scalar, narrow}).bytes, (2 + 2) * 1000 + 4);
  EXPECT_EQ(cost(OpKind::muon_polynomial, {}, {square, square, square}).bytes, (2 + 2 + 2) * 2500);
  EXPECT_EQ(cost(OpKind::muon_update, settings, {narrow, narrow, wide}).bytes, (2 + 2 + 8) * 1000);
  EXPECT_THROW(cost(OpKind::muon_polynomial, {}, {narrow, narrow, narrow}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_muon_test
