#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_attention_sink_test {
namespace {

constexpr std::int64_t s = 6, b = 2, heads = 2, d = 4;
constexpr Positions all{.start = {0, 0}, .length = {s, 0}};

/// Causal attention whose queries see a sink, too.
struct Attention {
  AttentionAttributes attributes{.scale = 0.5F, .queries = all, .keys = all};
  Tensor q = random_tensor(Shape(s, b, heads, d), 1), k = random_tensor(Shape(s, b, heads, d), 2);
  Tensor v = random_tensor(Shape(s, b, heads, d), 3), sink = random_tensor(Shape(heads, 1), 4);
  Tensor out{q.shape}, lse{Shape(b, heads, s)};

  void without_sink() { run(OpKind::attention, attributes, {q.host(), k.host(), v.host(), out.host(), lse.host()}); }
  void forward() {
    without_sink();
    run(OpKind::attention_sink, FusedAttributes{}, {sink.host(), out.host(), lse.host()});
  }
};

// The definition: one more key, of which every query knows the score, with a value of zeros.
TEST(AttentionSink, IsOneMoreKeyWithoutAValue) {
  Attention x;
  x.without_sink();
  const Tensor out = x.out, lse = x.lse;
  x.forward();
  for (std::int64_t query = 0; query < s; ++query)
    for (std::int64_t row = 0; row < b * heads; ++row) {
      const double keys = std::exp(double{lse[row * s + query]}), sink = std::exp(double{x.sink[row % heads]});
      EXPECT_NEAR(x.lse[row * s + query], std::log(keys + sink), 1e-6);
      for (std::int64_t e = 0; e < d; ++e) {
        const std::int64_t at = (query * b * heads + row) * d + e;
        EXPECT_NEAR(x.out[at], out[at] * keys / (keys + sink), 1e-6);
      }
    }
}

TEST(AttentionSink, OfNoWeightChangesNothing) {
  Attention x;
  x.without_sink();
  const Tensor out = x.out, lse = x.lse;
  x.sink.values.assign(heads, -1e30F);
  x.forward();
  EXPECT_EQ(x.out.values, out.values);
  EXPECT_EQ(x.lse.values, lse.values);
}

TEST(AttentionSink, BackwardEqualsFiniteDifferences) {
  Attention x;
  Tensor dout = random_tensor(x.out.shape, 5), dq(x.q.shape), dk(x.k.shape), dv(x.v.shape), dsink(x.sink.shape, 0.0F);
  x.forward();
  run(OpKind::attention_sink_backward, FusedAttributes{}, {x.sink.host(), x.out.host(), x.lse.host(), dout.host(), dsink.host()});
  run(OpKind::attention_backward, x.attributes,
      {x.q.host(), x.k.host(), x.v.host(), x.out.host(), x.lse.host(), dout.host(), dq.host(), dk.host(), dv.host()});
  const auto loss = [&] {
    x.forward();
    return dot(x.out, dout);
  };
  expect_gradient_of(loss, x.sink, dsink);
  expect_gradient_of(loss, x.q, dq);
  expect_gradient_of(loss, x.k, dk);
  expect_gradient_of(loss, x.v, dv);
}

TEST(AttentionSink, AddsToTheGradient) {
  Attention x;
  Tensor dout = random_tensor(x.out.shape, 5), once(x.sink.shape, 0.0F), twice(x.sink.shape, 0.0F);
  x.forward();
  const auto backward = [&](Tensor& dsink) {
    run(OpKind::attention_sink_backward, FusedAttributes{},
        {x.sink.host(), x.out.host(), x.lse.host(), dout.host(), dsink.host()});
  };
  backward(once);
  backward(twice);
  backward(twice);
  for (std::int64_t head = 0; head < heads; ++head) EXPECT_FLOAT_EQ(twice[head], 2 * once[head]);
}

}  // namespace
}  // namespace tandem::ops_attention_sink_test
