#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_cross_entropy_test {
namespace {

constexpr std::int64_t s = 3, b = 2, tokens = s * b, vocabulary = 12, shards = 4;
constexpr float scale = 1.0F / tokens;

/// Whole or one shard of the vocabulary; `max`, `sum` and `target` are to be reduced over the shards between the steps.
struct Part {
  CrossEntropyAttributes attributes;
  Tensor logits;
  Tensor max{Shape(s, b)}, sum{Shape(s, b)}, target{Shape(s, b)}, loss{Shape(1)}, dlogits;

  Part(Tensor l, std::int64_t vocab_start)
      : attributes{.vocab_start = vocab_start, .scale = scale}, logits(std::move(l)), dlogits(logits.shape) {}

  void find_max() { run(OpKind::cross_entropy_max, attributes, {logits.host(), max.host()}); }
  void find_sum() { run(OpKind::cross_entropy_sum, attributes, {logits.host(), max.host(), sum.host()}); }
  void find_target(Ids& targets) {
    run(OpKind::cross_entropy_target, attributes, {logits.host(), targets.host(), target.host()});
  }
  void find_loss() { run(OpKind::cross_entropy_loss, attributes, {max.host(), sum.host(), target.host(), loss.host()}); }
  void backward(Ids& targets) {
    run(OpKind::cross_entropy_backward, attributes, {logits.host(), targets.host(), max.host(), sum.host(), dlogits.host()});
  }
  double forward(Ids& targets) {
    find_max();
    find_sum();
    find_target(targets);
    find_loss();
    return loss[0];
  }
};

struct CrossEntropy : testing::Test {
  Ids targets = random_ids(Shape(s, b), vocabulary, 1);
  Part whole{random_tensor(Shape(s, b, vocabulary), 2), 0};

  /// Shifted far from zero: without the maximum taken off, exp overflows fp32 at 89.
  void SetUp() override {
    for (float& value : whole.logits.values) value = 100 + 4 * value;
  }
};

double naive_loss(const Tensor& logits, const Ids& targets) {
  double loss = 0;
  for (std::int64_t i = 0; i < tokens; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < vocabulary; ++j) sum += std::exp(double{logits[i * vocabulary + j]});
    loss -= std::log(std::exp(double{logits[i * vocabulary + targets[i]]}) / sum);
  }
  return loss / tokens;
}

TEST_F(CrossEntropy, LossEqualsLogSoftmax) { EXPECT_NEAR(whole.forward(targets), naive_loss(whole.logits, targets), 1e-5); }

// log(V) when all tokens are equally likely, whatever the targets.
TEST_F(CrossEntropy, OfEqualLogitsIsTheLogOfTheVocabulary) {
  std::fill(whole.logits.values.begin(), whole.logits.values.end(), 3.0F);
  EXPECT_NEAR(whole.forward(targets), std::log(double{vocabulary}), 1e-6);
}

TEST_F(CrossEntropy, BackwardEqualsFiniteDifferences) {
  whole.forward(targets);
  whole.backward(targets);
  const Tensor gradient = whole.dlogits;
  expect_gradient_of([&] { return naive_loss(whole.logits, targets); }, whole.logits, gradient, 1e-4);
}

TEST_F(CrossEntropy, BackwardMayOverwriteTheLogits) {
  whole.forward(targets);
  whole.backward(targets);
  run(OpKind::cross_entropy_backward, whole.attributes,
      {whole.logits.host(), targets.host(), whole.max.host(), whole.sum.host(), whole.logits.host()});
  EXPECT_EQ(whole.logits.values, whole.dlogits.values);
}

// The steps of vocabulary parallelism with the all-reduces done by hand.
TEST_F(CrossEntropy, ShardsOfTheVocabularyGiveTheWholesLossAndGradient) {
  constexpr std::int64_t local = vocabulary / shards;
  std::vector<Part> parts;
  for (std::int64_t shard = 0; shard < shards; ++shard)
    parts.emplace_back(slice_columns(whole.logits, vocabulary, shard * local, local, Shape(s, b, local)), shard * local);

  const auto all_reduce = [&](Tensor Part::*member, auto combine) {
    Tensor total = parts[0].*member;
    for (std::size_t p = 1; p < parts.size(); ++p)
      for (std::int64_t i = 0; i < total.size(); ++i) total[i] = combine(total[i], (parts[p].*member)[i]);
    for (Part& part : parts) part.*member = total;
  };
  for (Part& part : parts) part.find_max();
  all_reduce(&Part::max, [](float x, float y) { return std::max(x, y); });
  for (Part& part : parts) {
    part.find_sum();
    part.find_target(targets);
  }
  all_reduce(&Part::sum, std::plus<>());
  all_reduce(&Part::target, std::plus<>());

  whole.forward(targets);
  whole.backward(targets);
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    Part& part = parts[static_cast<std::size_t>(shard)];
    part.find_loss();
    part.backward(targets);
    EXPECT_NEAR(part.loss[0], whole.loss[0], 1e-6 * std::abs(whole.loss[0]));
    expect_close(part.dlogits, slice_columns(whole.dlogits, vocabulary, shard * local, local, Shape(s, b, local)), 1e-6);
  }
}

TEST_F(CrossEntropy, MovesTheLogitsOnceAndOneOfThemForATarget) {
  constexpr Bytes per_token = tokens * 4, logits_bytes = tokens * vocabulary * 2;
  const OperandType logits{whole.logits.shape, DType::bf16}, value{Shape(s, b), DType::f32}, ids{Shape(s, b), DType::i32};
  const OperandType loss{Shape(1), DType::f32};
  const OpAttributes attributes = whole.attributes;
  EXPECT_EQ(cost(OpKind::cross_entropy_max, attributes, {logits, value}).bytes, logits_bytes + per_token);
  EXPECT_EQ(cost(OpKind::cross_entropy_sum, attributes, {logits, value, value}).bytes, logits_bytes + 2 * per_token);
  EXPECT_EQ(cost(OpKind::cross_entropy_target, attributes, {logits, ids, value}).bytes, 2 * tokens + 2 * per_token);
  EXPECT_EQ(cost(OpKind::cross_entropy_loss, attributes, {value, value, value, loss}).bytes, 3 * per_token + 4);
  EXPECT_EQ(cost(OpKind::cross_entropy_backward, attributes, {logits, ids, value, value, logits}).bytes,
            2 * logits_bytes + 3 * per_token);
}

}  // namespace
}  // namespace tandem::ops_cross_entropy_test
