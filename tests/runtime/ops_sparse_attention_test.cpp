// Latent attention to chosen keys, and the indexer that chooses them: definitions, finite differences, closed forms of costs.
#include <gtest/gtest.h>

#include "runtime/ops/sparse_attention.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_sparse_attention_test {
namespace {

constexpr std::int64_t s = 7, b = 2, heads = 3, d = 6, c = 4, n = 2, e = 5;

Positions run_of(std::int32_t start, std::int32_t length) { return {.start = {start, 0}, .length = {length, 0}}; }

SparseAttentionAttributes attributes_of(float scale, bool all_keys = false, float coefficient = 1.0F) {
  return {.scale = scale, .queries = run_of(0, s), .keys = run_of(0, s), .all_keys = all_keys, .coefficient = coefficient};
}

/// Attention and what chose its keys.
struct Step {
  explicit Step(std::int64_t most) : chosen(Shape(b, s, most)) {}

  Tensor q = random_tensor(Shape(s, b, heads, d), 1), k = random_tensor(Shape(s, b, 1, d), 2);
  Tensor iq = random_tensor(Shape(s, b, n, e), 3), ik = random_tensor(Shape(s, b, 1, e), 4), w = random_tensor(Shape(s, b, n), 5);
  Ids chosen;
  Tensor out{Shape(s, b, heads, c)}, lse{Shape(b, heads, s)};
  SparseAttentionAttributes of_attention = attributes_of(0.5F), of_indexer = attributes_of(0.3F);

  void select() { run(OpKind::index_select, of_indexer, {iq.host(), ik.host(), w.host(), chosen.host()}); }
  void attend() { run(OpKind::sparse_attention, of_attention, {q.host(), k.host(), chosen.host(), out.host(), lse.host()}); }
  double score(std::int64_t sequence, std::int64_t query, std::int64_t key) const {
    double sum = 0;
    for (std::int64_t head = 0; head < n; ++head) {
      double dot = 0;
      for (std::int64_t i = 0; i < e; ++i)
        dot += double{iq[((query * b + sequence) * n + head) * e + i]} * ik[(key * b + sequence) * e + i];
      sum += double{w[(query * b + sequence) * n + head]} * std::max(0.0, dot);
    }
    return of_indexer.scale * sum;
  }
  std::vector<std::int32_t> chosen_by(std::int64_t sequence, std::int64_t query) const {
    const std::int64_t most = chosen.shape[2];
    const auto row = chosen.values.begin() + (sequence * s + query) * most;
    return {row, row + most};
  }
};

TEST(IndexSelect, TakesTheKeysOfTheHighestScores) {
  constexpr std::int64_t most = 3;
  Step x(most);
  x.select();
  for (std::int64_t sequence = 0; sequence < b; ++sequence)
    for (std::int64_t query = 0; query < s; ++query) {
      std::vector<std::int32_t> keys(static_cast<std::size_t>(query + 1));
      std::iota(keys.begin(), keys.end(), 0);
      std::ranges::stable_sort(keys, std::greater<>(),
                               [&](std::int32_t key) { return static_cast<float>(x.score(sequence, query, key)); });
      keys.resize(std::min<std::size_t>(keys.size(), most));
      std::ranges::sort(keys);
      keys.resize(most, -1);
      EXPECT_EQ(x.chosen_by(sequence, query), keys) << query;
    }
}

TEST(IndexSelect, TakesTheEarlierOfEqualScores) {
  Step x(2);
  x.w.values.assign(x.w.values.size(), 0.0F);
  x.select();
  for (std::int64_t query = 1; query < s; ++query) EXPECT_EQ(x.chosen_by(1, query), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(x.chosen_by(1, 0), (std::vector<std::int32_t>{0, -1}));
}

// Ranks that hold a part of the positions choose what one that has all chooses.
TEST(IndexSelect, GoesByPositions) {
  Step x(3);
  x.select();
  constexpr std::int64_t first = 3, count = 2;
  SparseAttentionAttributes part = x.of_indexer;
  part.queries = run_of(first, count);
  const auto rows = [&](Tensor& tensor) {
    Shape shape = tensor.shape;
    shape.dims[0] = count;
    return HostTensor{tensor.values.data() + first * tensor.size() / s, shape};
  };
  Ids chosen(Shape(b, count, 3));
  run(OpKind::index_select, part, {rows(x.iq), x.ik.host(), rows(x.w), chosen.host()});
  for (std::int64_t sequence = 0; sequence < b; ++sequence)
    for (std::int64_t i = 0; i < count * 3; ++i)
      EXPECT_EQ(chosen[sequence * count * 3 + i], x.chosen[(sequence * s + first) * 3 + i]);
}

// With all keys it is grouped-query attention with one key head, whose value is a part of the key.
TEST(SparseAttention, ToAllKeysIsAttention) {
  Step x(s);
  x.select();
  x.attend();
  const AttentionAttributes causal{.scale = 0.5F, .queries = run_of(0, s), .keys = run_of(0, s)};
  Tensor v = slice_columns(x.k, d, 0, c, Shape(s, b, 1, c)), out(x.out.shape), lse(x.lse.shape);
  run(OpKind::attention, causal, {x.q.host(), x.k.host(), v.host(), out.host(), lse.host()});
  for (std::int64_t i = 0; i < out.size(); ++i) EXPECT_NEAR(x.out[i], out[i], 1e-6);
  for (std::int64_t i = 0; i < lse.size(); ++i) EXPECT_NEAR(x.lse[i], lse[i], 1e-6);
}

TEST(SparseAttention, BackwardEqualsFiniteDifferences) {
  Step x(3);
  x.select();
  x.attend();
  Tensor dout = random_tensor(x.out.shape, 6), dq(x.q.shape), dk(x.k.shape);
  run(OpKind::sparse_attention_backward, x.of_attention,
      {x.q.host(), x.k.host(), x.chosen.host(), x.out.host(), x.lse.host(), dout.host(), dq.host(), dk.host()});
  const auto loss = [&] {
    x.attend();
    return dot(x.out, dout);
  };
  expect_gradient_of(loss, x.q, dq);
  expect_gradient_of(loss, x.k, dk);
}

// A row of probabilities for each head adds up to 1, on the keys that the query learns from.
TEST(IndexTarget, AddsUpAttentionOfTheHeads) {
  for (const bool all_keys : {false, true}) {
    Step x(3);
    x.select();
    x.of_attention.all_keys = all_keys;
    const std::int64_t row = all_keys ? s : 3;
    Tensor target(Shape(b, s, row));
    run(OpKind::index_target, x.of_attention, {x.q.host(), x.k.host(), x.chosen.host(), target.host()});
    for (std::int64_t sequence = 0; sequence < b; ++sequence)
      for (std::int64_t query = 0; query < s; ++query) {
        double sum = 0;
        for (std::int64_t j = 0; j < row; ++j) {
          const float share = target[(sequence * s + query) * row + j];
          sum += share;
          const bool learns = all_keys ? j <= query : x.chosen_by(sequence, query)[static_cast<std::size_t>(j)] >= 0;
          EXPECT_EQ(share > 0, learns);
        }
        EXPECT_NEAR(sum, heads, 1e-6);
      }
  }
}

/// The divergence that the gradients are of, from its definition.
double divergence(const Step& x, const Tensor& target, bool all_keys) {
  double sum = 0;
  const std::int64_t row = target.shape[2];
  for (std::int64_t sequence = 0; sequence < b; ++sequence)
    for (std::int64_t query = 0; query < s; ++query) {
      double normaliser = 0, whole = 0;
      const auto key_of = [&](std::int64_t j) {
        return all_keys ? j <= query ? static_cast<std::int32_t>(j) : -1
                        : x.chosen_by(sequence, query)[static_cast<std::size_t>(j)];
      };
      for (std::int64_t j = 0; j < row; ++j) {
        if (key_of(j) < 0) continue;
        normaliser += std::exp(x.score(sequence, query, key_of(j)));
        whole += target[(sequence * s + query) * row + j];
      }
      for (std::int64_t j = 0; j < row; ++j) {
        if (key_of(j) < 0) continue;
        const double p = target[(sequence * s + query) * row + j] / whole;
        sum += p * (std::log(p) - (x.score(sequence, query, key_of(j)) - std::log(normaliser)));
      }
    }
  return x.of_indexer.coefficient * sum;
}

// Away from where relu bends: the first head's products are all positive, the second's all negative.
TEST(IndexLoss, BackwardEqualsFiniteDifferences) {
  for (const bool all_keys : {false, true}) {
    Step x(3);
    for (float& value : x.ik.values) value = 1.5F + 0.5F * value;
    for (std::int64_t i = 0; i < x.iq.size(); ++i) x.iq[i] = (i / e % n == 0 ? 1.0F : -1.0F) * (1.5F + 0.5F * x.iq[i]);
    x.select();
    x.of_attention.all_keys = x.of_indexer.all_keys = all_keys;
    x.of_indexer.coefficient = 0.25F;
    Tensor target(Shape(b, s, all_keys ? s : 3)), dq(x.iq.shape), dk(x.ik.shape), dw(x.w.shape);
    run(OpKind::index_target, x.of_attention, {x.q.host(), x.k.host(), x.chosen.host(), target.host()});
    run(OpKind::index_loss_backward, x.of_indexer,
        {x.iq.host(), x.ik.host(), x.w.host(), x.chosen.host(), target.host(), dq.host(), dk.host(), dw.host()});
    const auto loss = [&] { return divergence(x, target, all_keys); };
    expect_gradient_of(loss, x.iq, dq);
    expect_gradient_of(loss, x.ik, dk);
    expect_gradient_of(loss, x.w, dw);
  }
}

// Tokens by heads, and W_h the rows 2, 3 and 4 of the head's five.
TEST(HeadGemm, MultipliesEachHeadWithItsRows) {
  constexpr std::int64_t a = 3, head_rows = 5, first = 2;
  Tensor x = random_tensor(Shape(s, b, heads, a), 1), w = random_tensor(Shape(heads * head_rows, c), 2), y(Shape(s, b, heads, c));
  const auto weight = [&](std::int64_t head, std::int64_t row, std::int64_t column) {
    return double{w[(head * head_rows + first + row) * c + column]};
  };
  run(OpKind::head_gemm, HeadGemmAttributes{.head_rows = head_rows, .first_row = first}, {x.host(), w.host(), y.host()});
  Tensor up(x.shape), dw(w.shape, 1.0F);
  run(OpKind::head_gemm, HeadGemmAttributes{.transpose_b = true, .head_rows = head_rows, .first_row = first},
      {y.host(), w.host(), up.host()});
  run(OpKind::head_gemm, HeadGemmAttributes{.transpose_a = true, .head_rows = head_rows, .first_row = first},
      {x.host(), y.host(), dw.host()});
  for (std::int64_t row = 0; row < s * b * heads; ++row) {
    const std::int64_t head = row % heads;
    for (std::int64_t column = 0; column < c; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < a; ++i) sum += x[row * a + i] * weight(head, i, column);
      EXPECT_NEAR(y[row * c + column], sum, 1e-6);
    }
    for (std::int64_t i = 0; i < a; ++i) {
      double sum = 0;
      for (std::int64_t column = 0; column < c; ++column) sum += y[row * c + column] * weight(head, i, column);
      EXPECT_NEAR(up[row * a + i], sum, 1e-5);
    }
  }
  for (std::int64_t row = 0; row < heads * head_rows; ++row)
    for (std::int64_t column = 0; column < c; ++column) {
      const std::int64_t head = row / head_rows, i = row % head_rows - first;
      double sum = 1;  // what was there
      for (std::int64_t token = 0; token < s * b && i >= 0; ++token)
        sum += double{x[(token * heads + head) * a + i]} * y[(token * heads + head) * c + column];
      EXPECT_NEAR(dw[row * c + column], sum, 1e-5);
    }
}

// Of 7 positions a query sees 1 to 7 keys, and chooses 3 at most: 28 pairs are scored, 18 attended to.
TEST(SparseAttention, CostsWhatItsPairsCost) {
  constexpr double seen = 28, chosen = 1 + 2 + 5 * 3, all = b * 2.0;
  const auto of = [](Shape shape, DType type = DType::bf16) { return OperandType{shape, type}; };
  const OperandType q = of(Shape(s, b, heads, d)), k = of(Shape(s, b, 1, d)), keys = of(Shape(b, s, 3), DType::i32);
  const OperandType out = of(Shape(s, b, heads, c)), lse = of(Shape(b, heads, s), DType::f32);
  const OperandType iq = of(Shape(s, b, n, e)), ik = of(Shape(s, b, 1, e)), w = of(Shape(s, b, n));
  const OperandType target = of(Shape(b, s, 3), DType::f32);
  const SparseAttentionAttributes attributes = attributes_of(1);
  EXPECT_EQ(cost(OpKind::sparse_attention, attributes, {q, k, keys, out, lse}).flops, all * heads * (d + c) * chosen);
  EXPECT_EQ(cost(OpKind::sparse_attention_backward, attributes, {q, k, keys, out, lse, out, q, k}).flops,
            all * heads * (3 * d + 2 * c) * chosen);
  const OpCost select = cost(OpKind::index_select, attributes, {iq, ik, w, keys});
  EXPECT_EQ(select.flops, all * n * e * seen);
  EXPECT_EQ(select.bytes, iq.bytes() + ik.bytes() + w.bytes() + keys.bytes() + 2 * b * 28 * 4);
  EXPECT_EQ(cost(OpKind::index_target, attributes, {q, k, keys, target}).flops, all * heads * d * chosen);
  EXPECT_EQ(cost(OpKind::index_loss_backward, attributes, {iq, ik, w, keys, target, iq, ik, w}).flops, all * 3 * n * e * chosen);
  const OperandType wide = of(Shape(b, s, s), DType::f32);
  EXPECT_EQ(cost(OpKind::index_target, attributes_of(1, true), {q, k, keys, wide}).flops, all * heads * d * seen);
}

}  // namespace
}  // namespace tandem::ops_sparse_attention_test
