#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_sigmoid_gate_test {
namespace {

constexpr std::int64_t s = 3, b = 2, f = 12;

/// So many gates for rows of twelve.
class SigmoidGateTest : public testing::TestWithParam<std::int64_t> {
 protected:
  Tensor x = random_tensor(Shape(s, b, f), 1), z = random_tensor(Shape(s, b, GetParam()), 2), y{x.shape};

  void forward() { run(OpKind::sigmoid_gate, std::monostate{}, {x.host(), z.host(), y.host()}); }
};

INSTANTIATE_TEST_SUITE_P(Gates, SigmoidGateTest, testing::Values(1, 3, 12));

TEST_P(SigmoidGateTest, EqualsItsFormula) {
  forward();
  std::vector<double> expected;
  for (std::int64_t i = 0; i < x.size(); ++i) expected.push_back(x[i] / (1 + std::exp(-double{z[i / (f / GetParam())]})));
  expect_close(y, expected, 1e-6);
}

TEST_P(SigmoidGateTest, BackwardEqualsFiniteDifferences) {
  Tensor dy = random_tensor(y.shape, 3), dx(x.shape), dz(z.shape);
  run(OpKind::sigmoid_gate_backward, std::monostate{}, {x.host(), z.host(), dy.host(), dx.host(), dz.host()});
  const auto loss = [&] {
    forward();
    return dot(y, dy);
  };
  expect_gradient_of(loss, x, dx);
  expect_gradient_of(loss, z, dz);
}

TEST_P(SigmoidGateTest, MovesEachOperandOnce) {
  const OperandType in{x.shape, DType::bf16}, gate{z.shape, DType::bf16};
  EXPECT_EQ(cost(OpKind::sigmoid_gate, std::monostate{}, {in, gate, in}).bytes, 2 * (2 * x.size() + z.size()));
  EXPECT_EQ(cost(OpKind::sigmoid_gate_backward, std::monostate{}, {in, gate, in, in, gate}).bytes,
            2 * (3 * x.size() + 2 * z.size()));
}

}  // namespace
}  // namespace tandem::ops_sigmoid_gate_test
