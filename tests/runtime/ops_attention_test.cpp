#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "runtime/ops/attention.h"
#include "runtime/ops/attention_mask.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_attention_test {
namespace {

constexpr std::int64_t b = 2, d = 4;
constexpr double infinity = std::numeric_limits<double>::infinity();

struct AttentionCase {
  std::string name;
  std::int32_t heads, kv_heads;
  bool causal;
  Positions queries, keys;
  std::int64_t value_dim = d;
  std::int32_t window = 0, chunk = 0;
  float softcap = 0;

  /// By the definition.
  bool sees(std::int32_t query, std::int32_t key) const {
    const std::int32_t i = queries.at(query), j = keys.at(key);
    if (!causal) return true;
    return j <= i && (window == 0 || i - j < window) && (chunk == 0 || i / chunk == j / chunk);
  }
};

struct AttentionOperands {
  AttentionAttributes attributes;
  Tensor q, k, v, out, lse;

  explicit AttentionOperands(const AttentionCase& c)
      : attributes{.causal = c.causal,
                   .scale = 0.5F,
                   .queries = c.queries,
                   .keys = c.keys,
                   .window = c.window,
                   .chunk = c.chunk,
                   .softcap = c.softcap},
        q(random_tensor(Shape(c.queries.count(), b, c.heads, d), 1)),
        k(random_tensor(Shape(c.keys.count(), b, c.kv_heads, d), 2)),
        v(random_tensor(Shape(c.keys.count(), b, c.kv_heads, c.value_dim), 3)),
        out(Shape(c.queries.count(), b, c.heads, c.value_dim)),
        lse(Shape(b, c.heads, c.queries.count(), 1)) {}

  void forward() { run(OpKind::attention, attributes, {q.host(), k.host(), v.host(), out.host(), lse.host()}); }
};

struct Reference {
  std::vector<double> out, lse;
};

/// The definition, one query at a time, in double precision.
Reference naive(const AttentionCase& c, const AttentionOperands& x) {
  const std::int64_t s = x.q.shape[0], t = x.k.shape[0], heads = x.q.shape[2], kv_heads = x.k.shape[2];
  const std::int64_t value_dim = x.v.shape[3];
  Reference result{std::vector<double>(x.out.values.size()), std::vector<double>(x.lse.values.size())};
  for (std::int64_t i = 0; i < s; ++i)
    for (std::int64_t row = 0; row < b * heads; ++row) {
      const std::int64_t batch = row / heads, head = row % heads, kv_head = head / (heads / kv_heads);
      const std::int64_t at_query = (i * b * heads + row) * d, at_out = (i * b * heads + row) * value_dim;
      const auto key_row = [&](std::int64_t j) { return (j * b + batch) * kv_heads + kv_head; };
      double sum = 0;
      for (std::int64_t j = 0; j < t; ++j) {
        if (!c.sees(static_cast<int>(i), static_cast<int>(j))) continue;
        double score = 0;
        for (std::int64_t e = 0; e < d; ++e) score += double{x.q[at_query + e]} * x.k[key_row(j) * d + e];
        const double capped = c.softcap > 0 ? c.softcap * std::tanh(0.5 * score / c.softcap) : 0.5 * score;
        const double weight = std::exp(capped);
        sum += weight;
        for (std::int64_t e = 0; e < value_dim; ++e)
          result.out[static_cast<std::size_t>(at_out + e)] += weight * x.v[key_row(j) * value_dim + e];
      }
      for (std::int64_t e = 0; e < value_dim && sum > 0; ++e) result.out[static_cast<std::size_t>(at_out + e)] /= sum;
      result.lse[static_cast<std::size_t>(row * s + i)] = std::log(sum);
    }
  return result;
}

class Attention : public testing::TestWithParam<AttentionCase> {
 protected:
  AttentionOperands x{GetParam()};
};

TEST_P(Attention, EqualsTheNaiveDefinition) {
  x.forward();
  const Reference expected = naive(GetParam(), x);
  expect_close(x.out, expected.out, 2e-6);
  for (std::size_t i = 0; i < expected.lse.size(); ++i) {
    if (expected.lse[i] == -infinity)
      EXPECT_EQ(x.lse.values[i], -infinity) << "query that sees no key";
    else
      EXPECT_NEAR(x.lse.values[i], expected.lse[i], 2e-6);
  }
}

TEST_P(Attention, BackwardEqualsFiniteDifferences) {
  Tensor dout = random_tensor(x.out.shape, 4), dq(x.q.shape), dk(x.k.shape), dv(x.v.shape);
  x.forward();
  run(OpKind::attention_backward, x.attributes,
      {x.q.host(), x.k.host(), x.v.host(), x.out.host(), x.lse.host(), dout.host(), dq.host(), dk.host(), dv.host()});
  const auto loss = [&] {
    x.forward();
    return dot(x.out, dout);
  };
  expect_gradient_of(loss, x.q, dq);
  expect_gradient_of(loss, x.k, dk);
  expect_gradient_of(loss, x.v, dv);
}

TEST_P(Attention, CountsTwoFlopsPerDepthOfEachProductAndVisiblePair) {
  const AttentionCase& c = GetParam();
  std::int64_t pairs = 0;
  for (std::int32_t i = 0; i < c.queries.count(); ++i)
    for (std::int32_t j = 0; j < c.keys.count(); ++j) pairs += c.sees(i, j);
  const auto type = [](const Tensor& tensor) { return OperandType{tensor.shape, DType::bf16}; };
  const OperandType q = type(x.q), k = type(x.k), v = type(x.v), out = type(x.out), lse{x.lse.shape, DType::f32};

  const OpCost forward = cost(OpKind::attention, x.attributes, {q, k, v, out, lse});
  EXPECT_EQ(forward.flops, 2 * b * c.heads * (d + c.value_dim) * pairs);
  EXPECT_EQ(forward.math, DType::bf16);
  EXPECT_EQ(forward.bytes, 2 * (x.q.size() + x.k.size() + x.v.size() + x.out.size()) + 4 * x.lse.size());

  const OpCost backward = cost(OpKind::attention_backward, x.attributes, {q, k, v, out, lse, out, q, k, v});
  EXPECT_EQ(backward.flops, 2 * b * c.heads * (3 * d + 2 * c.value_dim) * pairs);
  EXPECT_EQ(backward.bytes, 4 * (x.q.size() + x.k.size() + x.v.size() + x.out.size()) + 4 * x.lse.size());
}

constexpr Positions run_of(std::int32_t start, std::int32_t length) { return {.start = {start, 0}, .length = {length, 0}}; }
constexpr Positions zigzag{.start = {2, 8}, .length = {2, 2}};

INSTANTIATE_TEST_SUITE_P(Masks, Attention,
                         testing::Values(AttentionCase{"full", 2, 2, false, run_of(0, 5), run_of(0, 7)},
                                         AttentionCase{"causal", 2, 2, true, run_of(0, 6), run_of(0, 6)},
                                         AttentionCase{"grouped", 4, 2, true, run_of(0, 5), run_of(0, 5)},
                                         AttentionCase{"multi_query", 3, 1, true, run_of(0, 4), run_of(0, 4)},
                                         AttentionCase{"later_queries", 2, 1, true, run_of(4, 4), run_of(0, 8)},
                                         AttentionCase{"queries_before_keys", 2, 1, true, run_of(2, 5), run_of(4, 4)},
                                         AttentionCase{"narrow_values", 4, 2, true, run_of(0, 5), run_of(0, 5), 3},
                                         AttentionCase{"wide_values", 2, 2, true, run_of(2, 3), run_of(0, 5), 6},
                                         AttentionCase{"zigzag", 2, 1, true, zigzag, run_of(0, 12)},
                                         AttentionCase{"zigzag_keys", 2, 1, true, zigzag, {.start = {0, 9}, .length = {3, 3}}},
                                         AttentionCase{"sliding", 2, 1, true, run_of(0, 9), run_of(0, 9), d, 3},
                                         AttentionCase{"sliding_zigzag", 2, 1, true, zigzag, run_of(0, 12), d, 4},
                                         AttentionCase{"chunked", 2, 1, true, run_of(0, 10), run_of(0, 10), d, 0, 4},
                                         AttentionCase{"chunked_zigzag", 2, 1, true, zigzag, run_of(0, 12), d, 0, 5},
                                         AttentionCase{"capped", 2, 1, true, run_of(0, 6), run_of(0, 6), d, 0, 0, 0.7F},
                                         AttentionCase{"capped_full", 4, 2, false, run_of(0, 5), run_of(0, 7), 3, 0, 0, 1.5F}),
                         [](const auto& c) { return c.param.name; });

/// One causal sequence, whole and in two blocks of keys that all its queries read.
struct AttentionBlocks : testing::Test {
  static constexpr std::int32_t s = 8, half = 4, heads = 2;
  AttentionOperands whole{{"", heads, heads, true, run_of(0, s), run_of(0, s)}};
  std::vector<AttentionOperands> blocks;

  void SetUp() override {
    whole.forward();
    for (std::int32_t block = 0; block < 2; ++block) {
      AttentionOperands& part =
          blocks.emplace_back(AttentionCase{"", heads, heads, true, run_of(0, s), run_of(block * half, half)});
      part.k.values = keys_of_block(whole.k, block);
      part.v.values = keys_of_block(whole.v, block);
    }
  }
  static std::vector<float> keys_of_block(const Tensor& keys, std::int32_t block) {
    const auto half_size = static_cast<std::ptrdiff_t>(keys.values.size() / 2);
    return {keys.values.begin() + block * half_size, keys.values.begin() + (block + 1) * half_size};
  }
};

// What ring attention relies on (Liu et al. 2023): softmax over all keys is the blocks' softmax weighted by exp(lse).
TEST_F(AttentionBlocks, MergeByTheirLogSumExp) {
  for (AttentionOperands& part : blocks) part.forward();
  Tensor out(whole.out.shape), lse(whole.lse.shape);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t query = i / (b * heads * d), row = i / d % (b * heads), at = row * s + query;
    const double first = std::exp(double{blocks[0].lse[at]}), second = std::exp(double{blocks[1].lse[at]});
    lse[at] = static_cast<float>(std::log(first + second));
    out[i] = static_cast<float>((first * blocks[0].out[i] + second * blocks[1].out[i]) / (first + second));
  }
  expect_close(out, whole.out, 1e-6);
  expect_close(lse, whole.lse, 1e-6);
}

// Backward of a block takes the whole's out and lse: its dk and dv are the whole's, and the blocks' dq add up.
TEST_F(AttentionBlocks, BackwardWithTheWholesLogSumExpAddsUp) {
  Tensor dout = random_tensor(whole.out.shape, 4);
  const auto backward = [&](AttentionOperands& x, Tensor& dq, Tensor& dk, Tensor& dv) {
    run(OpKind::attention_backward, x.attributes,
        {x.q.host(), x.k.host(), x.v.host(), whole.out.host(), whole.lse.host(), dout.host(), dq.host(), dk.host(), dv.host()});
  };
  Tensor dq(whole.q.shape), dk(whole.k.shape), dv(whole.v.shape), dq_sum(whole.q.shape, 0.0F);
  backward(whole, dq, dk, dv);
  for (std::int32_t block = 0; block < 2; ++block) {
    AttentionOperands& part = blocks[static_cast<std::size_t>(block)];
    Tensor dq_part(part.q.shape), dk_part(part.k.shape), dv_part(part.v.shape);
    backward(part, dq_part, dk_part, dv_part);
    expect_close(dk_part, keys_of_block(dk, block), 1e-5);
    expect_close(dv_part, keys_of_block(dv, block), 1e-5);
    run(OpKind::add, std::monostate{}, {dq_sum.host(), dq_part.host(), dq_sum.host()});
  }
  expect_close(dq_sum, dq, 1e-5);
}

TEST(CausalPairs, OfOneWholeSequenceIsTheTriangle) {
  EXPECT_EQ(seen_pairs({.queries = run_of(0, 8192), .keys = run_of(0, 8192)}, 8192, 8192), 8192LL * 8193 / 2);
}

TEST(CausalPairs, EqualTheCountOfRandomRuns) {
  std::mt19937 generator(7);
  std::uniform_int_distribution<std::int32_t> start(0, 30), length(0, 12);
  const auto random_positions = [&] {
    return Positions{.start = {start(generator), start(generator)}, .length = {length(generator), length(generator)}};
  };
  for (int trial = 0; trial < 1000; ++trial) {
    const Positions queries = random_positions(), keys = random_positions();
    std::int64_t pairs = 0;
    for (std::int32_t i = 0; i < queries.count(); ++i)
      for (std::int32_t j = 0; j < keys.count(); ++j) pairs += keys.at(j) <= queries.at(i);
    ASSERT_EQ(seen_pairs({.queries = queries, .keys = keys}, queries.count(), keys.count()), pairs);
  }
}

TEST(SeenPairs, EqualTheCountOfRandomWindowsAndChunks) {
  std::mt19937 generator(11);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(generator() % n); };
  for (int trial = 0; trial < 1000; ++trial) {
    const auto random_positions = [&] { return Positions{.start = {below(30), below(30)}, .length = {below(13), below(13)}}; };
    AttentionCase c{"", 1, 1, true, random_positions(), random_positions(), d, below(10), below(8)};
    std::int64_t pairs = 0;
    for (std::int32_t i = 0; i < c.queries.count(); ++i)
      for (std::int32_t j = 0; j < c.keys.count(); ++j) pairs += c.sees(i, j);
    const AttentionAttributes attributes{.queries = c.queries, .keys = c.keys, .window = c.window, .chunk = c.chunk};
    ASSERT_EQ(seen_pairs(attributes, c.queries.count(), c.keys.count()), pairs) << "window " << c.window << " chunk " << c.chunk;
  }
}

TEST(SeenPairs, AWindowOfTheSequenceHidesNothing) {
  AttentionOperands whole({"", 2, 1, true, run_of(0, 9), run_of(0, 9)}),
      window({"", 2, 1, true, run_of(0, 9), run_of(0, 9), d, 9});
  AttentionOperands chunk({"", 2, 1, true, run_of(0, 9), run_of(0, 9), d, 0, 9});
  for (AttentionOperands* x : {&whole, &window, &chunk}) x->forward();
  EXPECT_EQ(window.out.values, whole.out.values);
  EXPECT_EQ(chunk.out.values, whole.out.values);
}

}  // namespace
}  // namespace tandem::ops_attention_test
