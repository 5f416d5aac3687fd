#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_delta_rule_test {
namespace {

using Doubles = std::vector<double>;

Doubles doubles_of(const Tensor& tensor) { return {tensor.values.begin(), tensor.values.end()}; }

struct RuleSizes {
  std::int64_t s, b, heads, key_heads, key_dim, value_dim, chunk, first_head, all_heads;
  std::int64_t mixed() const { return 2 * key_heads * key_dim + heads * value_dim; }
  std::int64_t projected() const { return mixed() + heads * value_dim + 2 * heads; }
  DeltaRuleAttributes attributes() const {
    return {.key_heads = static_cast<std::int32_t>(key_heads),
            .key_dim = static_cast<std::int32_t>(key_dim),
            .value_dim = static_cast<std::int32_t>(value_dim),
            .chunk = static_cast<std::int32_t>(chunk),
            .first_head = static_cast<std::int32_t>(first_head)};
  }
};

/// A query or key divided by its length.
Doubles unit(const Doubles& from, std::int64_t first, std::int64_t count) {
  double squares = 1e-6;
  for (std::int64_t i = first; i < first + count; ++i)
    squares += from[static_cast<std::size_t>(i)] * from[static_cast<std::size_t>(i)];
  Doubles result;
  for (std::int64_t i = first; i < first + count; ++i) result.push_back(from[static_cast<std::size_t>(i)] / std::sqrt(squares));
  return result;
}

/// The recurrence, a position at a time: the state fades, the value is compared with what it says of the key, and written.
Doubles recurred(const RuleSizes& n, const Doubles& mixed, const Doubles& projected, const Doubles& parameters) {
  Doubles out;
  out.resize(static_cast<std::size_t>(n.s * n.b * n.heads * n.value_dim));
  const auto at = [](const Doubles& of, std::int64_t i) { return of[static_cast<std::size_t>(i)]; };
  for (std::int64_t b = 0; b < n.b; ++b)
    for (std::int64_t h = 0; h < n.heads; ++h) {
      Doubles state(static_cast<std::size_t>(n.key_dim * n.value_dim));
      const std::int64_t key_head = h / (n.heads / n.key_heads);
      for (std::int64_t t = 0; t < n.s; ++t) {
        const std::int64_t row = t * n.b + b, gate = (row + 1) * n.projected() - 2 * n.heads + h;
        const Doubles q = unit(mixed, row * n.mixed() + key_head * n.key_dim, n.key_dim);
        const Doubles k = unit(mixed, row * n.mixed() + (n.key_heads + key_head) * n.key_dim, n.key_dim);
        const double raw = at(projected, gate + n.heads) + at(parameters, n.all_heads + n.first_head + h);
        const double fade = std::exp(-std::exp(at(parameters, n.first_head + h)) * std::log1p(std::exp(raw)));
        const double writing = 1 / (1 + std::exp(-at(projected, gate)));
        for (double& element : state) element *= fade;
        for (std::int64_t p = 0; p < n.value_dim; ++p) {
          double said = 0, y = 0;
          for (std::int64_t e = 0; e < n.key_dim; ++e) said += at(state, e * n.value_dim + p) * at(k, e);
          const double v = at(mixed, row * n.mixed() + 2 * n.key_heads * n.key_dim + h * n.value_dim + p);
          for (std::int64_t e = 0; e < n.key_dim; ++e) {
            double& element = state[static_cast<std::size_t>(e * n.value_dim + p)];
            element += writing * at(k, e) * (v - said);
            y += element * at(q, e) / std::sqrt(static_cast<double>(n.key_dim));
          }
          out[static_cast<std::size_t>((row * n.heads + h) * n.value_dim + p)] = y;
        }
      }
    }
  return out;
}

/// As in ops_mamba_test.cpp.
void expect_gradient_in_double(const std::function<double()>& loss, Doubles& x, const Tensor& gradient) {
  constexpr double h = 1e-5;
  Doubles differences;
  for (double& value : x) {
    const double original = value;
    value = original + h;
    const double above = loss();
    value = original - h;
    differences.push_back((above - loss()) / (2 * h));
    value = original;
  }
  expect_close(gradient, differences, 2e-6);
}

class DeltaRule : public testing::TestWithParam<std::int64_t> {
 protected:
  RuleSizes n{.s = 11,
              .b = 2,
              .heads = 4,
              .key_heads = 2,
              .key_dim = 5,
              .value_dim = 3,
              .chunk = GetParam(),
              .first_head = 1,
              .all_heads = 6};
  Tensor mixed = random_tensor(Shape(n.s, n.b, n.mixed()), 1);
  Tensor projected = random_tensor(Shape(n.s, n.b, n.projected()), 2);
  Tensor parameters = random_tensor(Shape(2 * n.all_heads, 1), 3);
  Tensor out{Shape(n.s, n.b, n.heads* n.value_dim)};
};

// One position a chunk; chunks that the last one does not fill; one chunk, with and without room.
INSTANTIATE_TEST_SUITE_P(Chunks, DeltaRule, testing::Values(1, 3, 4, 11, 16));

TEST_P(DeltaRule, InChunksEqualsTheRecurrence) {
  run(OpKind::delta_rule, n.attributes(), {mixed.host(), projected.host(), parameters.host(), out.host()});
  expect_close(out, recurred(n, doubles_of(mixed), doubles_of(projected), doubles_of(parameters)), 1e-6);
}

TEST_P(DeltaRule, BackwardEqualsFiniteDifferencesOfTheRecurrence) {
  Tensor dout = random_tensor(out.shape, 4), dmixed(mixed.shape), dprojected(projected.shape, 0.0F);
  Tensor dparameters(parameters.shape, 0.0F);
  run(OpKind::delta_rule_backward, n.attributes(),
      {mixed.host(), projected.host(), parameters.host(), dout.host(), dmixed.host(), dprojected.host(), dparameters.host()});
  Doubles m = doubles_of(mixed), p = doubles_of(projected), w = doubles_of(parameters);
  const auto loss = [&] {
    const Doubles result = recurred(n, m, p, w);
    return std::inner_product(result.begin(), result.end(), dout.values.begin(), 0.0);
  };
  expect_gradient_in_double(loss, m, dmixed);
  expect_gradient_in_double(loss, p, dprojected);
  expect_gradient_in_double(loss, w, dparameters);
}

/// As in Qwen3-Next: 4096 positions, 32 value heads and 16 key heads of 128, chunks of 64.
constexpr RuleSizes large{.s = 4096,
                          .b = 2,
                          .heads = 32,
                          .key_heads = 16,
                          .key_dim = 128,
                          .value_dim = 128,
                          .chunk = 64,
                          .first_head = 0,
                          .all_heads = 32};

std::vector<OperandType> operands_of(const RuleSizes& n, bool backward) {
  const auto type = [](Shape shape) { return OperandType{shape, DType::bf16}; };
  const OperandType mixed = type(Shape(n.s, n.b, n.mixed())), projected = type(Shape(n.s, n.b, n.projected()));
  const OperandType parameters = type(Shape(2 * n.all_heads, 1)), out = type(Shape(n.s, n.b, n.heads * n.value_dim));
  if (!backward) return {mixed, projected, parameters, out};
  return {mixed, projected, parameters, out, mixed, projected, parameters};
}

TEST(DeltaRuleCost, CountsTheProductsOfChunks) {
  const double heads = 4096 * 2 * 32, ep = 128.0 * 128, ce = 64.0 * 128, cp = 64.0 * 128, cc = 64.0 * 64;
  const double again = 2 * ce + cc / 3 + 2 * (ce + cp) + 4 * ep;
  EXPECT_DOUBLE_EQ(operation(OpKind::delta_rule).cost(operands_of(large, false), large.attributes()).flops,
                   heads * (again + 2 * ep + 2 * (ce + cp)));
  EXPECT_DOUBLE_EQ(operation(OpKind::delta_rule_backward).cost(operands_of(large, true), large.attributes()).flops,
                   heads * (again + 12 * ep + 14 * ce + 8 * cp + 4 * cc));
}

TEST(DeltaRuleCost, IsTheSumOfItsKernels) {
  for (const bool backward : {false, true}) {
    const Operation& rule = operation(backward ? OpKind::delta_rule_backward : OpKind::delta_rule);
    const std::vector<OpCost> parts = rule.parts(operands_of(large, backward), large.attributes());
    const OpCost whole = rule.cost(operands_of(large, backward), large.attributes());
    OpCost sum;
    for (const OpCost& part : parts) {
      sum.flops += part.flops;
      sum.bytes += part.bytes;
    }
    EXPECT_EQ(rule.kernels, static_cast<int>(parts.size()));
    EXPECT_DOUBLE_EQ(sum.flops, whole.flops);
    EXPECT_EQ(sum.bytes, whole.bytes);
  }
}

}  // namespace
}  // namespace tandem::ops_delta_rule_test
