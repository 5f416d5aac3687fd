#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_gemm_test {
namespace {

constexpr std::int64_t m = 12, n = 5, k = 7;

struct GemmCase {
  GemmAttributes attributes;
  Shape a, b;
};

class Gemm : public testing::TestWithParam<GemmCase> {};

std::vector<double> naive(const Tensor& a, const Tensor& b, const GemmAttributes& attributes, const Tensor& old) {
  std::vector<double> c;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = attributes.accumulate ? old[i * n + j] : 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += double{a[attributes.transpose_a ? l * m + i : i * k + l]} * b[attributes.transpose_b ? j * k + l : l * n + j];
      c.push_back(sum);
    }
  return c;
}

TEST_P(Gemm, EqualsTheNaiveSum) {
  const GemmCase& gemm = GetParam();
  Tensor a = random_tensor(gemm.a, 1), b = random_tensor(gemm.b, 2);
  Tensor c = gemm.attributes.accumulate ? random_tensor(Shape(3, 4, n), 3) : Tensor(Shape(3, 4, n));
  const std::vector<double> expected = naive(a, b, gemm.attributes, c);
  run(OpKind::gemm, gemm.attributes, {a.host(), b.host(), c.host()});
  expect_close(c, expected, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    AllTransposes, Gemm,
    testing::Values(GemmCase{{}, Shape(3, 4, k), Shape(k, n)}, GemmCase{{.transpose_b = true}, Shape(3, 4, k), Shape(n, k)},
                    GemmCase{{.transpose_a = true}, Shape(k, m), Shape(k, n)},
                    GemmCase{{.transpose_a = true, .transpose_b = true}, Shape(k, m), Shape(n, k)},
                    GemmCase{{.accumulate = true}, Shape(3, 4, k), Shape(k, n)},
                    GemmCase{{.transpose_b = true, .accumulate = true}, Shape(3, 4, k), Shape(n, k)},
                    GemmCase{{.transpose_a = true, .accumulate = true}, Shape(7, 1, m), Shape(7, 1, n)},
                    GemmCase{{.transpose_a = true, .transpose_b = true, .accumulate = true}, Shape(k, m), Shape(n, k)}));

// dX = dY W and dW += dY^T X are what backward of Y = X W^T means.
TEST(Gemm, GradientsOfALinearLayer) {
  Tensor x = random_tensor(Shape(3, 4, k), 1), w = random_tensor(Shape(n, k), 2), y(Shape(3, 4, n));
  Tensor dy = random_tensor(y.shape, 3), dx(x.shape), dw(w.shape, 0.0F);
  run(OpKind::gemm, GemmAttributes{}, {dy.host(), w.host(), dx.host()});
  run(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true}, {dy.host(), x.host(), dw.host()});
  const auto loss = [&] {
    run(OpKind::gemm, GemmAttributes{.transpose_b = true}, {x.host(), w.host(), y.host()});
    return dot(y, dy);
  };
  expect_gradient_of(loss, x, dx);
  expect_gradient_of(loss, w, dw);
}

TEST(Gemm, CostsTwoFlopsPerProductAndEachOperandOnce) {
  const OperandType a{Shape(3, 4, k), DType::bf16}, b{Shape(n, k), DType::bf16}, c{Shape(3, 4, n), DType::f32};
  const OpCost written = cost(OpKind::gemm, GemmAttributes{.transpose_b = true}, {a, b, c});
  EXPECT_EQ(written.flops, 2 * m * n * k);
  EXPECT_EQ(written.math, DType::bf16);
  EXPECT_EQ(written.bytes, 2 * (m * k + k * n) + 4 * m * n);
  const OpCost updated = cost(OpKind::gemm, GemmAttributes{.transpose_b = true, .accumulate = true}, {a, b, c});
  EXPECT_EQ(updated.bytes, written.bytes + 4 * m * n);
}

TEST(Gemm, RejectsShapesThatDoNotMultiply) {
  Tensor a(Shape(2, 3)), b(Shape(4, 5)), c(Shape(2, 5));
  EXPECT_THROW(run(OpKind::gemm, GemmAttributes{}, {a.host(), b.host(), c.host()}), std::logic_error);
  EXPECT_THROW(run(OpKind::gemm, GemmAttributes{}, {a.host(), b.host()}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_gemm_test
