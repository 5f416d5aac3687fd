#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_lightning_test {
namespace {

using Doubles = std::vector<double>;

Doubles doubles_of(const Tensor& tensor) { return {tensor.values.begin(), tensor.values.end()}; }

struct LightningShape {
  std::int64_t s, b, heads, head_dim, chunk, first_head, all_heads;
  double decay = 0.75;
  std::int64_t inner() const { return heads * head_dim; }
  LightningAttributes attributes() const {
    return {.head_dim = static_cast<std::int32_t>(head_dim),
            .chunk = static_cast<std::int32_t>(chunk),
            .heads = static_cast<std::int32_t>(all_heads),
            .first_head = static_cast<std::int32_t>(first_head),
            .decay = static_cast<float>(decay)};
  }
};

/// The recurrence, a position at a time: the state fades, the position is added, and its query reads.
Doubles recurred(const LightningShape& n, const Doubles& mixed) {
  Doubles out(static_cast<std::size_t>(n.s * n.b * n.inner()));
  for (std::int64_t b = 0; b < n.b; ++b)
    for (std::int64_t h = 0; h < n.heads; ++h) {
      Doubles state(static_cast<std::size_t>(n.head_dim * n.head_dim));
      const double of_model = static_cast<double>(n.first_head + h + 1) / static_cast<double>(n.all_heads);
      const double fade = std::exp(-n.decay * std::pow(2.0, -8 * of_model));
      for (std::int64_t t = 0; t < n.s; ++t) {
        const std::int64_t row = t * n.b + b;
        const auto part = [&](std::int64_t which, std::int64_t i) {
          return mixed[static_cast<std::size_t>((row * 3 + which) * n.inner() + h * n.head_dim + i)];
        };
        for (std::int64_t p = 0; p < n.head_dim; ++p) {
          double y = 0;
          for (std::int64_t e = 0; e < n.head_dim; ++e) {
            double& element = state[static_cast<std::size_t>(e * n.head_dim + p)];
            element = fade * element + part(1, e) * part(2, p);
            y += element * part(0, e);
          }
          out[static_cast<std::size_t>(row * n.inner() + h * n.head_dim + p)] = y;
        }
      }
    }
  return out;
}

class Lightning : public testing::TestWithParam<std::int64_t> {
 protected:
  LightningShape n{.s = 11, .b = 2, .heads = 3, .head_dim = 5, .chunk = GetParam(), .first_head = 2, .all_heads = 8};
  Tensor mixed = random_tensor(Shape(n.s, n.b, 3 * n.inner()), 1);
  Tensor out{Shape(n.s, n.b, n.inner())};
};

// One position a chunk; chunks that the last one does not fill; one chunk, with and without room.
INSTANTIATE_TEST_SUITE_P(Chunks, Lightning, testing::Values(1, 3, 4, 11, 16));

TEST_P(Lightning, InChunksEqualsTheRecurrence) {
  run(OpKind::lightning_attention, n.attributes(), {mixed.host(), out.host()});
  expect_close(out, recurred(n, doubles_of(mixed)), 1e-6);
}

// As in ops_mamba_test.cpp: differences of a polynomial of degree three, in double precision.
TEST_P(Lightning, BackwardEqualsFiniteDifferencesOfTheRecurrence) {
  Tensor dout = random_tensor(out.shape, 4), dmixed(mixed.shape);
  run(OpKind::lightning_attention_backward, n.attributes(), {mixed.host(), dout.host(), dmixed.host()});
  Doubles m = doubles_of(mixed), differences;
  const auto loss = [&] {
    const Doubles result = recurred(n, m);
    return std::inner_product(result.begin(), result.end(), dout.values.begin(), 0.0);
  };
  constexpr double h = 1e-5;
  for (double& value : m) {
    const double original = value;
    value = original + h;
    const double above = loss();
    value = original - h;
    differences.push_back((above - loss()) / (2 * h));
    value = original;
  }
  expect_close(dmixed, differences, 2e-6);
}

// Without fading it is causal attention without a softmax.
TEST(LightningWithoutDecay, IsTheSumOverAllThatCameBefore) {
  const LightningShape n{.s = 7, .b = 1, .heads = 1, .head_dim = 3, .chunk = 2, .first_head = 0, .all_heads = 1, .decay = 0};
  Tensor mixed = random_tensor(Shape(n.s, n.b, 9), 1), out(Shape(n.s, n.b, 3));
  run(OpKind::lightning_attention, n.attributes(), {mixed.host(), out.host()});
  Doubles expected;
  for (std::int64_t t = 0; t < n.s; ++t)
    for (std::int64_t p = 0; p < 3; ++p) {
      double sum = 0;
      for (std::int64_t u = 0; u <= t; ++u)
        for (std::int64_t e = 0; e < 3; ++e) sum += double{mixed[t * 9 + e]} * mixed[u * 9 + 3 + e] * mixed[u * 9 + 6 + p];
      expected.push_back(sum);
    }
  expect_close(out, expected, 1e-6);
}

/// As in MiniMax-Text-01: 8192 positions, 64 heads of 128, chunks of 256.
constexpr LightningShape large{.s = 8192, .b = 2, .heads = 64, .head_dim = 128, .chunk = 256, .first_head = 0, .all_heads = 64};

std::vector<OperandType> operands_of(bool backward) {
  const OperandType mixed{Shape(large.s, large.b, 3 * large.inner()), DType::bf16};
  const OperandType out{Shape(large.s, large.b, large.inner()), DType::bf16};
  return backward ? std::vector{mixed, out, mixed} : std::vector{mixed, out};
}

TEST(LightningCost, CountsTheProductsOfChunks) {
  const double heads = 8192 * 2 * 64, dd = 128.0 * 128, dc = 128.0 * 257;
  EXPECT_DOUBLE_EQ(operation(OpKind::lightning_attention).cost(operands_of(false), large.attributes()).flops,
                   heads * (4 * dd + 2 * dc));
  EXPECT_DOUBLE_EQ(operation(OpKind::lightning_attention_backward).cost(operands_of(true), large.attributes()).flops,
                   heads * (10 * dd + 6 * dc));
}

// Rows of q, k, v, out and their gradients in bf16, and one state for each chunk in fp32.
TEST(LightningCost, IsTheSumOfItsKernels) {
  const Bytes row = Bytes{8192} * 2 * 64 * 128 * 2, states = Bytes{8192} / 256 * 2 * 64 * 128 * 128 * 4;
  const Bytes expected[] = {(4 + 2 + 3) * row + (1 + 2 + 1) * states, (2 + 7 + 2 + 9) * row + (1 + 2 + 1 + 2 + 2) * states};
  for (const bool backward : {false, true}) {
    const Operation& op = operation(backward ? OpKind::lightning_attention_backward : OpKind::lightning_attention);
    const std::vector<OpCost> parts = op.parts(operands_of(backward), large.attributes());
    const OpCost whole = op.cost(operands_of(backward), large.attributes());
    OpCost sum;
    for (const OpCost& part : parts) {
      sum.flops += part.flops;
      sum.bytes += part.bytes;
    }
    EXPECT_EQ(op.kernels, static_cast<int>(parts.size()));
    EXPECT_DOUBLE_EQ(sum.flops, whole.flops);
    EXPECT_EQ(sum.bytes, whole.bytes);
    EXPECT_EQ(whole.bytes, expected[backward ? 1 : 0]);
  }
}

TEST(LightningShapes, AreChecked) {
  Tensor mixed(Shape(4, 1, 24)), out(Shape(4, 1, 8)), wide(Shape(4, 1, 12));
  const LightningAttributes fits{.head_dim = 4, .chunk = 2, .heads = 4, .first_head = 2};
  EXPECT_NO_THROW(cost(OpKind::lightning_attention, fits, {{mixed.shape}, {out.shape}}));
  EXPECT_THROW(cost(OpKind::lightning_attention, fits, {{mixed.shape}, {wide.shape}}), std::logic_error);
  const LightningAttributes beyond{.head_dim = 4, .chunk = 2, .heads = 4, .first_head = 3};
  EXPECT_THROW(cost(OpKind::lightning_attention, beyond, {{mixed.shape}, {out.shape}}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_lightning_test
