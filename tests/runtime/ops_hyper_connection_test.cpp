// Residual streams side by side: definitions, finite differences, and what Sinkhorn and Knopp's iteration leads to.
#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_hyper_connection_test {
namespace {

constexpr int n = 3;
constexpr std::int64_t s = 2, b = 2, h = 5, tokens = s * b;

struct Streams {
  explicit Streams(bool mixes) : attributes{.streams = n, .iterations = mixes ? 7 : 0}, gate_count(mixes ? n * (n + 2) : n) {}

  HyperAttributes attributes;
  int gate_count;
  Tensor x = random_tensor(Shape(s, b, n*h), 1), logits = random_tensor(Shape(tokens, gate_count), 2),
         base = random_tensor(Shape(1, gate_count + (attributes.iterations > 0 ? 3 : 1)), 3);
  Tensor gates{Shape(tokens, gate_count)}, z = random_tensor(Shape(s, b, h), 4);

  void make_gates() { run(OpKind::hyper_gates, attributes, {x.host(), logits.host(), base.host(), gates.host()}); }
  double mix(std::int64_t token, int from, int to) const { return gates[token * gate_count + 2 * n + from * n + to]; }
};

class HyperGates : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Mixes, HyperGates, testing::Bool());

TEST_P(HyperGates, ReadAndWriteAreSigmoidsOfTheNormedLogits) {
  Streams of(GetParam());
  of.make_gates();
  const int factors = GetParam() ? 3 : 1;
  for (std::int64_t token = 0; token < tokens; ++token) {
    double squares = 0;
    for (std::int64_t i = 0; i < n * h; ++i) squares += std::pow(of.x[token * n * h + i], 2);
    const double inverse = 1 / std::sqrt(squares / (n * h) + 1e-6);
    for (int g = 0; g < (GetParam() ? 2 * n : n); ++g) {
      const double u = of.logits[token * of.gate_count + g] * inverse;
      const double sigmoid = 1 / (1 + std::exp(-(of.base[g / n] * u + of.base[factors + g])));
      EXPECT_NEAR(of.gates[token * of.gate_count + g], g < n ? sigmoid + 1e-6 : 2 * sigmoid, 1e-6) << g;
    }
  }
}

TEST_P(HyperGates, BackwardEqualsFiniteDifferences) {
  Streams of(GetParam());
  Tensor dgates = random_tensor(of.gates.shape, 5), dlogits(of.logits.shape), dx(of.x.shape, 0.0F), dbase(of.base.shape, 0.0F);
  run(OpKind::hyper_gates_backward, of.attributes,
      {of.x.host(), of.logits.host(), of.base.host(), dgates.host(), dlogits.host(), dx.host(), dbase.host()});
  const auto loss = [&] {
    of.make_gates();
    return dot(of.gates, dgates);
  };
  expect_gradient_of(loss, of.logits, dlogits);
  expect_gradient_of(loss, of.base, dbase);
  expect_gradient_of(loss, of.x, dx, 1e-3);  // through the norm, whose higher derivatives are larger
}

// The last division is of columns; after many, rows add up to 1, too.
TEST(HyperGates, MixWithRowsAndColumnsOfOne) {
  Streams of(true);
  of.attributes.iterations = 30;
  of.make_gates();
  for (std::int64_t token = 0; token < tokens; ++token)
    for (int i = 0; i < n; ++i) {
      double row = 0, column = 0;
      for (int j = 0; j < n; ++j) {
        row += of.mix(token, i, j);
        column += of.mix(token, j, i);
      }
      EXPECT_NEAR(column, 1, 1e-5);
      EXPECT_NEAR(row, 1, 1e-4);
    }
}

TEST(HyperExpand, CopiesAndAddsUp) {
  const HyperAttributes attributes{.streams = n};
  Tensor x = random_tensor(Shape(s, b, h), 1), y(Shape(s, b, n * h)), back(x.shape);
  run(OpKind::hyper_expand, attributes, {x.host(), y.host()});
  for (std::int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i / (n * h) * h + i % h]);
  run(OpKind::hyper_expand_backward, attributes, {y.host(), back.host()});
  for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(back[i], n * x[i]);
}

TEST(HyperGather, BackwardEqualsFiniteDifferences) {
  for (const bool mixes : {true, false}) {
    Streams of(mixes);
    of.make_gates();
    Tensor y(of.z.shape), dy = random_tensor(y.shape, 5), dx(of.x.shape, 0.0F), dgates(of.gates.shape, 0.0F);
    run(OpKind::hyper_gather_backward, of.attributes, {of.x.host(), of.gates.host(), dy.host(), dx.host(), dgates.host()});
    const auto loss = [&] {
      run(OpKind::hyper_gather, of.attributes, {of.x.host(), of.gates.host(), y.host()});
      return dot(y, dy);
    };
    expect_gradient_of(loss, of.x, dx);
    expect_gradient_of(loss, of.gates, dgates);
  }
}

TEST(HyperMerge, BackwardEqualsFiniteDifferences) {
  Streams of(true);
  of.make_gates();
  Tensor y(of.x.shape), dy = random_tensor(y.shape, 5), dx(of.x.shape), dz(of.z.shape), dgates(of.gates.shape);
  run(OpKind::hyper_merge_backward, of.attributes,
      {of.x.host(), of.gates.host(), of.z.host(), dy.host(), dx.host(), dz.host(), dgates.host()});
  const auto loss = [&] {
    run(OpKind::hyper_merge, of.attributes, {of.x.host(), of.gates.host(), of.z.host(), y.host()});
    return dot(y, dy);
  };
  expect_gradient_of(loss, of.x, dx);
  expect_gradient_of(loss, of.z, dz);
  expect_gradient_of(loss, of.gates, dgates);
}

// Mixing as the columns add up to 1 keeps the sum of streams that are alike, and of what is made as much goes to each as it says.
TEST(HyperMerge, KeepsWhatAllStreamsHaveInCommon) {
  Streams of(true);
  of.make_gates();
  const HyperAttributes attributes = of.attributes;
  Tensor one = random_tensor(Shape(s, b, h), 6), x(of.x.shape), y(of.x.shape), nothing(one.shape, 0.0F);
  run(OpKind::hyper_expand, attributes, {one.host(), x.host()});
  run(OpKind::hyper_merge, attributes, {x.host(), of.gates.host(), nothing.host(), y.host()});
  expect_close(y, x, 1e-5);
}

TEST(HyperConnections, MoveEachOperandOnceAndUpdatesTwice) {
  const HyperAttributes attributes{.streams = n};
  const OperandType x{Shape(s, b, n * h), DType::bf16}, z{Shape(s, b, h), DType::bf16},
      gates{Shape(tokens, n * (n + 2)), DType::f32};
  const Bytes streams = 2 * tokens * n * h, one = 2 * tokens * h, of_gates = 4 * tokens * n * (n + 2);
  EXPECT_EQ(cost(OpKind::hyper_merge, attributes, {x, gates, z, x}).bytes, 2 * streams + one + of_gates);
  EXPECT_EQ(cost(OpKind::hyper_gather_backward, attributes, {x, gates, z, x, gates}).bytes,
            streams + of_gates + one + 2 * (streams + of_gates));
}

}  // namespace
}  // namespace tandem::ops_hyper_connection_test
