#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_unit_norm_test {
namespace {

struct UnitNorm {
  Tensor x = random_tensor(Shape(3, 2, 4, 6), 1), y{x.shape};
  void forward() { run(OpKind::unit_norm, NormAttributes{}, {x.host(), y.host()}); }
};

// It is RMSNorm with weights of 1, whose gradient of x is its, too.
TEST(UnitNorm, IsANormWhoseWeightsAreOne) {
  UnitNorm norm;
  norm.forward();
  Tensor weights(Shape(1, 6), 1.0F), y(norm.x.shape), dy = random_tensor(norm.x.shape, 2), dx(norm.x.shape), other(norm.x.shape);
  Tensor dweights(weights.shape, 0.0F);
  run(OpKind::norm, NormAttributes{}, {norm.x.host(), weights.host(), y.host()});
  expect_close(norm.y, y, 1e-6);
  run(OpKind::unit_norm_backward, NormAttributes{}, {norm.x.host(), dy.host(), dx.host()});
  run(OpKind::norm_backward, NormAttributes{}, {norm.x.host(), weights.host(), dy.host(), other.host(), dweights.host()});
  expect_close(dx, other, 1e-6);
}

TEST(UnitNorm, BackwardEqualsFiniteDifferences) {
  UnitNorm norm;
  for (float& value : norm.x.values) value += value < 0 ? -1.0F : 1.0F;  // no row near 0, where the norm bends
  Tensor dy = random_tensor(norm.x.shape, 2), dx(norm.x.shape);
  run(OpKind::unit_norm_backward, NormAttributes{}, {norm.x.host(), dy.host(), dx.host()});
  const auto loss = [&] {
    norm.forward();
    return dot(norm.y, dy);
  };
  expect_gradient_of(loss, norm.x, dx);
}

TEST(UnitNorm, MovesEachOperandOnce) {
  const OperandType x{Shape(3, 2, 4, 6), DType::bf16};
  EXPECT_EQ(cost(OpKind::unit_norm, NormAttributes{}, {x, x}).bytes, 2 * 2 * 144);
  EXPECT_EQ(cost(OpKind::unit_norm_backward, NormAttributes{}, {x, x, x}).bytes, 3 * 2 * 144);
}

}  // namespace
}  // namespace tandem::ops_unit_norm_test
