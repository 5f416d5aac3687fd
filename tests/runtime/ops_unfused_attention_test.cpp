// batched_gemm and softmax, put together, are the fused attention.
#include <gtest/gtest.h>

#include "runtime/ops/batched_gemm.h"
#include "runtime/ops/softmax.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_unfused_attention_test {
namespace {

struct Case {
  std::int64_t queries, keys, batch, heads, kv_heads, dim, value_dim;
  AttentionAttributes attributes;
};

Positions run_of(std::int32_t start, std::int64_t length) {
  return {.start = {start, 0}, .length = {static_cast<std::int32_t>(length), 0}};
}

const std::vector<Case> cases{
    {7, 7, 2, 4, 4, 6, 6, {.scale = 0.4F, .queries = run_of(0, 7), .keys = run_of(0, 7)}},
    {5, 9, 1, 6, 2, 4, 3, {.scale = 0.7F, .queries = run_of(4, 5), .keys = run_of(0, 9)}},
    {6, 5, 3, 3, 1, 2, 8, {.causal = false, .scale = 1.3F, .queries = {}, .keys = {}}},
    {4, 4, 2, 2, 2, 5, 5, {.scale = 0.5F, .queries = {.start = {0, 6}, .length = {2, 2}}, .keys = run_of(0, 4)}},
};

// FlashAttention-2's formulas and those of the steps are equal; fp32 rounds them differently.
TEST(UnfusedAttention, IsTheFusedOne) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.queries);
    const Tensor q = random_tensor(Shape(c.queries, c.batch, c.heads, c.dim), 1),
                 k = random_tensor(Shape(c.keys, c.batch, c.kv_heads, c.dim), 2),
                 v = random_tensor(Shape(c.keys, c.batch, c.kv_heads, c.value_dim), 3);
    const Tensor dout = random_tensor(Shape(c.queries, c.batch, c.heads, c.value_dim), 4);
    const auto of = [](const Tensor& tensor) { return HostTensor{const_cast<float*>(tensor.values.data()), tensor.shape}; };
    Tensor out(dout.shape), lse(Shape(c.batch, c.heads, c.queries)), dq(q.shape), dk(k.shape), dv(v.shape);
    run(OpKind::attention, c.attributes, {of(q), of(k), of(v), out.host(), lse.host()});
    run(OpKind::attention_backward, c.attributes,
        {of(q), of(k), of(v), out.host(), lse.host(), of(dout), dq.host(), dk.host(), dv.host()});

    const Shape of_scores(c.batch, c.heads, c.queries, c.keys);
    const float scale = c.attributes.scale;
    Tensor scores(of_scores), p(of_scores), dp(of_scores), ds(of_scores);
    Tensor context(out.shape), dq_steps(q.shape), dk_steps(k.shape), dv_steps(v.shape);
    const auto product = [](BatchedGemmAttributes attributes, HostTensor a, HostTensor b, HostTensor into) {
      run(OpKind::batched_gemm, attributes, {a, b, into});
    };
    product({.transpose_b = true, .factor = scale}, of(q), of(k), scores.host());
    run(OpKind::softmax, c.attributes, {scores.host(), p.host()});
    product({}, p.host(), of(v), context.host());
    product({.transpose_a = true}, p.host(), of(dout), dv_steps.host());
    product({.transpose_b = true}, of(dout), of(v), dp.host());
    run(OpKind::softmax_backward, c.attributes, {p.host(), dp.host(), ds.host()});
    product({.factor = scale}, ds.host(), of(k), dq_steps.host());
    product({.transpose_a = true, .factor = scale}, ds.host(), of(q), dk_steps.host());
    expect_close(context, out.values);
    expect_close(dq_steps, dq.values);
    expect_close(dk_steps, dk.values);
    expect_close(dv_steps, dv.values);
  }
}

TEST(BatchedGemm, ComputesAllScores) {
  const OperandType q{Shape(8, 2, 6, 16), DType::bf16}, k{Shape(4, 2, 3, 16), DType::bf16},
      scores{Shape(2, 6, 8, 4), DType::bf16};
  const auto flops = [](BatchedGemmAttributes attributes, const OperandType& a, const OperandType& b, const OperandType& c) {
    return cost(OpKind::batched_gemm, attributes, {a, b, c}).flops;
  };
  EXPECT_EQ(flops({.transpose_b = true}, q, k, scores), 2.0 * 2 * 6 * 8 * 4 * 16);
  EXPECT_EQ(flops({}, scores, k, q), 2.0 * 2 * 6 * 8 * 4 * 16);
  EXPECT_EQ(flops({.transpose_a = true}, scores, q, k), 2.0 * 2 * 6 * 8 * 4 * 16);
  EXPECT_EQ(cost(OpKind::batched_gemm, BatchedGemmAttributes{}, {scores, k, q}).bytes, q.bytes() + k.bytes() + scores.bytes());
  EXPECT_THROW(flops({.transpose_b = true}, q, k, q), std::logic_error);
  EXPECT_THROW(flops({.transpose_a = true, .transpose_b = true}, q, k, scores), std::logic_error);
}

TEST(Softmax, ReadsWhatIsSeenAndWritesAll) {
  const AttentionAttributes causal{.queries = run_of(0, 8), .keys = run_of(0, 8)};
  const OperandType p{Shape(2, 3, 8, 8), DType::bf16};
  EXPECT_EQ(cost(OpKind::softmax, causal, {p, p}).bytes, 2 * 2 * 3 * (8 * 9 / 2 + 8 * 8));
  EXPECT_EQ(cost(OpKind::softmax_backward, causal, {p, p, p}).bytes, 3 * p.bytes());
}

}  // namespace
}  // namespace tandem::ops_unfused_attention_test
