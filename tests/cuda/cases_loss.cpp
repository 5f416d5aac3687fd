#include <cmath>

#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

/// Targets within this rank's part of the vocabulary, before it and behind it.
constexpr std::int32_t vocab_start = 50;

std::vector<float> between(const Shape& shape, unsigned seed, float low, float high) {
  std::vector<float> numbers = random_numbers(shape, seed);
  for (float& number : numbers) number = low + (high - low) * (number + 1) / 2;
  return numbers;
}

void append(std::vector<OperationCase>& cases, DType type, int vocabulary) {
  const CrossEntropyAttributes attributes{.vocab_start = vocab_start, .scale = 0.125F};
  const Shape logits(5, 3, vocabulary), tokens(5, 3);
  const CaseOperand z = read(logits, type, random_numbers(logits, 1, 8));
  const CaseOperand max = read(tokens, DType::f32, between(tokens, 3, 7, 9));
  const CaseOperand sum = read(tokens, DType::f32, between(tokens, 4, 1, 30));
  const CaseOperand targets = read_integers(tokens, random_integers(tokens, vocabulary + 2 * vocab_start, 2));
  const auto name = join_name(std::string(name_of(type)), vocabulary);
  const CaseOperand result = write(tokens, DType::f32);
  cases.push_back({join_name("cross_entropy_max", name), OpKind::cross_entropy_max, attributes, {z, result}});
  cases.push_back({join_name("cross_entropy_sum", name), OpKind::cross_entropy_sum, attributes, {z, max, result}});
  cases.push_back({join_name("cross_entropy_target", name), OpKind::cross_entropy_target, attributes, {z, targets, result}});
  cases.push_back({join_name("cross_entropy_backward", name),
                   OpKind::cross_entropy_backward,
                   attributes,
                   {z, targets, max, sum, write(logits, type)}});
  cases.push_back(cases.back());
  cases.back().name += "_in_place";
  cases.back().operands.back().same_as = 0;
}

}  // namespace

std::vector<OperationCase> cross_entropy_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types)
    for (const int vocabulary : {1, 8, 37, 1000, 9008}) append(cases, type, vocabulary);
  for (const int n : {1, 7, 2050}) {
    const Shape tokens(n);
    cases.push_back({join_name("cross_entropy_loss", n),
                     OpKind::cross_entropy_loss,
                     CrossEntropyAttributes{.scale = 0.25F},
                     {read(tokens, DType::f32, between(tokens, 1, 0, 9)), read(tokens, DType::f32, between(tokens, 2, 1, 30)),
                      read(tokens, DType::f32, between(tokens, 3, -9, 9)), write(Shape(1), DType::f32)}});
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  return cases;
}

std::vector<OperationCase> embedding_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    for (const int width : {1, 8, 37, 264, 2056}) {
      const Shape ids(5, 3), table(40, width), out(5, 3, width);
      const EmbeddingAttributes attributes{10};  // of 60 tokens, those from 10 to 49 live here
      const auto name = join_name(std::string(name_of(type)), width);
      const CaseOperand tokens = read_integers(ids, random_integers(ids, 60, 1));
      cases.push_back(
          {join_name("embedding", name), OpKind::embedding, attributes, {tokens, read(table, type, 2), write(out, type)}});
      for (const DType gradient : {DType::f32, DType::bf16}) {
        cases.push_back({join_name("embedding_backward", name, name_of(gradient)),
                         OpKind::embedding_backward,
                         attributes,
                         {tokens, read(out, type, 2), update(table, gradient, 3)}});
      }
    }
  }
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  // Tokens that occur a thousand times, over more ids than are looked through at once.
  const Shape ids(2500, 2), table(7, 16), out(2500, 2, 16);
  cases.push_back({"embedding_backward_of_few_tokens",
                   OpKind::embedding_backward,
                   EmbeddingAttributes{2},
                   {read_integers(ids, random_integers(ids, 7, 1)), read(out, DType::bf16, 2), update(table, DType::f32, 3)}});
  return cases;
}

std::vector<OperationCase> attention_merge_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    for (const int width : {2, 37, 64, 128, 520}) {
      const Shape out(5, 2, 3, width), lse(2, 3, 5);
      std::vector<float> kept = random_numbers(lse, 3, 4), taken = random_numbers(lse, 4, 4);
      kept[1] = taken[2] = kept[7] = taken[7] = -INFINITY;  // queries that one side shows no key, or neither
      cases.push_back({join_name("attention_merge", name_of(type), width),
                       OpKind::attention_merge,
                       {},
                       {read(out, type, 1), read(lse, DType::f32, taken), update(out, type, 2), update(lse, DType::f32, kept)}});
      cases.push_back(skewed(cases.back()));
    }
  }
  return cases;
}

}  // namespace tandem::studies
