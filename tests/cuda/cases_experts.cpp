#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/cuda/cases.h"

namespace tandem::studies {
namespace {

constexpr int dropped = -3;  // by expert 2

/// Slots for all choices among so many rows, each at most once, and some choices that were dropped.
std::vector<std::int32_t> some_slots(int choices, int rows) {
  std::vector<std::int32_t> slots(static_cast<std::size_t>(rows));
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), std::mt19937(1));
  slots.resize(static_cast<std::size_t>(choices), dropped);
  for (std::size_t i = 0; i < slots.size(); i += 7) slots[i] = dropped;
  return slots;
}

void append_permutations(std::vector<OperationCase>& cases, DType type, int width, int choices) {
  constexpr int token_count = 23;
  const int row_count = token_count * choices + 6;  // some rows stay free
  const Shape tokens(token_count, width), rows(row_count, width), per_choice(token_count, choices);
  const CaseOperand slots = read_integers(per_choice, some_slots(token_count * choices, row_count));
  const CaseOperand gates = read(per_choice, DType::f32, 3);
  const auto name = join_name(std::string(name_of(type)), width, choices);
  cases.push_back({join_name("permute", name), OpKind::permute, {}, {read(tokens, type, 1), slots, write(rows, type)}});
  cases.push_back(
      {join_name("permute_backward", name), OpKind::permute_backward, {}, {read(rows, type, 1), slots, write(tokens, type)}});
  cases.push_back({join_name("combine", name), OpKind::combine, {}, {read(rows, type, 1), slots, gates, write(tokens, type)}});
  cases.push_back({join_name("combine_backward", name),
                   OpKind::combine_backward,
                   {},
                   {read(tokens, type, 1), read(rows, type, 2), slots, gates, write(rows, type), write(per_choice, DType::f32)}});
}

/// Gates into the rows of their choices, and the gradients of the rows back: a choice is a token of width 1.
void append_gates(std::vector<OperationCase>& cases) {
  const Shape choices(69, 1), rows(75, 1);
  const CaseOperand slots = read_integers(choices, some_slots(69, 75));
  cases.push_back({"permute_gates", OpKind::permute, {}, {read(choices, DType::f32, 1), slots, write(rows, DType::f32)}});
  cases.push_back(
      {"permute_gates_backward", OpKind::permute_backward, {}, {read(rows, DType::f32, 1), slots, write(choices, DType::f32)}});
}

void append_regroup(std::vector<OperationCase>& cases, DType type, int width) {
  const std::vector<std::int32_t> of_experts{3, 0, 5, 1, 1, 1, 1, 1, 1, 2};  // more than are copied by one launch
  const int filled = std::accumulate(of_experts.begin(), of_experts.end(), 0);
  for (const int padding : {0, 4}) {
    RegroupAttributes attributes{.blocks = 3, .block = filled + padding, .inverse = false, .rows = of_experts};
    const Shape by_source(3 * (filled + padding), width), by_expert(3 * filled, width);
    const auto name = join_name(std::string(name_of(type)), width, "padded", padding);
    cases.push_back(
        {join_name("regroup", name), OpKind::regroup, attributes, {read(by_source, type, 1), write(by_expert, type)}});
    attributes.inverse = true;
    cases.push_back(
        {join_name("regroup_back", name), OpKind::regroup, attributes, {read(by_expert, type, 1), write(by_source, type)}});
  }
}

struct RoutingCase {
  std::string name;
  int tokens;
  RoutingAttributes attributes;
};

std::vector<RoutingCase> routing_cases() {
  constexpr auto sigmoid = ScoreFunction::sigmoid;
  return {
      {"few", 40, {.top_k = 2, .block = 60, .slots = {20, 20, 10, 10}}},
      {"one_choice", 70, {.top_k = 1, .groups = 2, .block = 60, .balance = 0.01F, .slots = {9, 9, 9, 9, 9}}},
      {"many_experts", 33, {.top_k = 8, .block = 1000, .slots = std::vector<std::int32_t>(100, 5)}},
      {"in_parts", 48, {.top_k = 2, .groups = 4, .parts = 3, .block = 11, .balance = 0.02F, .slots = {4, 0, 4, 5, 6, 3}}},
      {"zigzag", 48, {.top_k = 2, .groups = 2, .zigzag = 3, .parts = 2, .block = 20, .balance = 0.5F, .slots = {9, 8, 7, 6}}},
      {"zigzag_groups_within_chunks", 48, {.top_k = 2, .groups = 8, .zigzag = 2, .block = 30, .slots = {9, 8, 7, 6}}},
      {"in_nodes", 50, {.top_k = 4, .block = 400, .nodes = 4, .node_limit = 2, .slots = std::vector<std::int32_t>(16, 20)}},
      {"in_nodes_of_the_best_expert",
       50,
       {.top_k = 4,
        .block = 400,
        .nodes = 4,
        .node_limit = 2,
        .slots = std::vector<std::int32_t>(16, 20),
        .pre_softmax = true,
        .best_of_node = 1}},
      {"more_tokens_than_a_block", 600, {.top_k = 2, .block = 700, .slots = {200, 150, 180, 170}}},
      {"forced", 24, {.top_k = 3, .groups = 2, .parts = 2, .block = 30, .forced = true, .slots = {12, 4, 10, 0, 2, 8}}},
      {"forced_zigzag",
       24,
       {.top_k = 2, .groups = 2, .zigzag = 2, .block = 24, .forced = true, .balance = 1, .slots = {10, 4, 10}}},
      {"forced_beyond_the_slots",
       24,
       {.top_k = 3,
        .groups = 2,
        .parts = 2,
        .block = 30,
        .forced = true,
        .slots = {7, 4, 7, 0, 2, 7},
        .load = {12, 4, 10, 0, 2, 8}}},
      {"expert_choice",
       24,
       {.top_k = 6, .groups = 2, .parts = 2, .block = 15, .balance = 0.1F, .slots = {5, 5, 5, 5, 5, 5}, .expert_choice = true}},
      {"expert_choice_zigzag",
       48,
       {.top_k = 4, .groups = 2, .zigzag = 3, .parts = 2, .block = 20, .slots = {9, 9, 9, 9}, .expert_choice = true}},
      {"expert_choice_of_all", 12, {.top_k = 3, .block = 36, .slots = {12, 12, 12}, .expert_choice = true}},
      {"expert_choice_of_many", 700, {.top_k = 3, .block = 450, .slots = {150, 150, 150}, .expert_choice = true}},
      {"forced_in_nodes",
       16,
       {.top_k = 4, .block = 64, .nodes = 3, .node_limit = 2, .forced = true, .slots = {8, 8, 2, 4, 15, 11, 6, 4, 6}}},
      {"sigmoid", 40, {.top_k = 3, .block = 80, .balance = 0.3F, .slots = {20, 20, 10, 30}, .score = sigmoid, .scaling = 2.5F}},
      {"sigmoid_of_one", 40, {.top_k = 1, .block = 80, .balance = 0.3F, .slots = {20, 20, 10, 30}, .score = sigmoid}},
      {"sqrtsoftplus",
       40,
       {.top_k = 3,
        .block = 80,
        .balance = 0.3F,
        .slots = {20, 20, 10, 30},
        .score = ScoreFunction::sqrtsoftplus,
        .scaling = 1.5F,
        .biased = true}},
      {"sqrtsoftplus_of_one",
       40,
       {.top_k = 1, .block = 80, .balance = 0.3F, .slots = {20, 20, 10, 30}, .score = ScoreFunction::sqrtsoftplus}},
      {"sigmoid_of_many",
       33,
       {.top_k = 8, .groups = 3, .block = 1000, .slots = std::vector<std::int32_t>(100, 5), .score = sigmoid, .biased = true}},
      {"sigmoid_in_nodes",
       50,
       {.top_k = 4,
        .block = 400,
        .nodes = 4,
        .node_limit = 2,
        .slots = std::vector<std::int32_t>(16, 20),
        .score = sigmoid,
        .scaling = 0.5F,
        .biased = true}},
      {"sigmoid_forced",
       24,
       {.top_k = 3,
        .groups = 2,
        .parts = 2,
        .block = 30,
        .forced = true,
        .slots = {12, 4, 10, 0, 2, 8},
        .score = sigmoid,
        .biased = true}},
      {"sequences",
       42,
       {.top_k = 2,
        .groups = 2,
        .parts = 2,
        .block = 20,
        .balance = 0.5F,
        .slots = {9, 8, 7, 6},
        .sequences = 3,
        .sequence = 56}},
      {"sigmoid_sequences",
       600,
       {.top_k = 3,
        .block = 900,
        .balance = 0.3F,
        .slots = {300, 200, 100, 300},
        .score = sigmoid,
        .sequences = 2,
        .sequence = 300}},
      {"hashed",
       80,
       {.top_k = 3,
        .groups = 2,
        .parts = 2,
        .block = 90,
        .slots = {9, 20, 20, 12, 12, 13, 10, 30},
        .score = ScoreFunction::sqrtsoftplus,
        .hashed = true}},
      {"pre_softmax",
       50,
       {.top_k = 4,
        .block = 400,
        .nodes = 4,
        .node_limit = 2,
        .balance = 0.2F,
        .slots = std::vector<std::int32_t>(16, 20),
        .pre_softmax = true,
        .scaling = 16}},
  };
}

void append_routes(std::vector<OperationCase>& cases) {
  for (const auto& [name, tokens, attributes] : routing_cases()) {
    const Shape logits(tokens, attributes.slots.size()), per_choice(tokens, attributes.top_k);
    const CaseOperand z = read(logits, DType::f32, random_numbers(logits, 1, 3));
    const Shape of_experts(static_cast<std::int64_t>(attributes.slots.size()));
    const CaseOperand bias = read(of_experts, DType::f32, random_numbers(of_experts, 5, 0.3F));
    OperationCase route{
        join_name("route", name), OpKind::route, attributes, {z, write(per_choice, DType::f32), write(per_choice, DType::i32)}};
    const CaseOperand numbers = read_integers(Shape(tokens), random_integers(Shape(tokens), 1000, 6));
    if (attributes.biased) route.operands.insert(route.operands.begin() + 1, bias);
    if (attributes.hashed) route.operands.insert(route.operands.begin() + 1, numbers);
    cases.push_back(route);
    // The slots that route gives on the host are those that its backward is given.
    std::vector<float> of_logits = z.numbers, gates(static_cast<std::size_t>(per_choice.elements()));
    std::vector<std::int32_t> slots(gates.size());
    std::vector<float> of_bias = bias.numbers;
    std::vector tensors{HostTensor{of_logits.data(), logits}, HostTensor{gates.data(), per_choice},
                        HostTensor{slots.data(), per_choice}};
    std::vector<std::int32_t> of_tokens = numbers.integers;
    if (attributes.biased) tensors.insert(tensors.begin() + 1, HostTensor{of_bias.data(), of_experts});
    if (attributes.hashed) tensors.insert(tensors.begin() + 1, HostTensor{of_tokens.data(), Shape(tokens)});
    operation(OpKind::route).host(tensors, attributes);
    cases.push_back(
        {join_name("count_choices", name),
         OpKind::count_choices,
         attributes,
         {read_integers(per_choice, slots), update(of_experts, DType::f32, std::vector<float>(attributes.slots.size(), 3))}});
    OperationCase backward{join_name("route_backward", name),
                           OpKind::route_backward,
                           attributes,
                           {z, read_integers(per_choice, slots), read(per_choice, DType::f32, 2), write(logits, DType::f32)}};
    if (attributes.sequences > 0) {
      const Shape by_sequence(attributes.sequences, of_experts[0]);
      cases.push_back({join_name("count_by_sequence", name),
                       OpKind::count_by_sequence,
                       attributes,
                       {read_integers(per_choice, slots), write(by_sequence, DType::f32)}});
      std::vector<float> counts = random_numbers(by_sequence, 7, 9);
      for (float& count : counts) count = std::floor(std::abs(count));
      backward.operands.insert(backward.operands.begin() + 2, read(by_sequence, DType::f32, counts));
    }
    cases.push_back(backward);
  }
}

void append_biases(std::vector<OperationCase>& cases, int layers, int experts) {
  const Shape shape(layers, experts);
  std::vector<float> counts = random_numbers(shape, 1, 50);
  for (float& count : counts) count = std::floor(std::abs(count));
  cases.push_back({join_name("update_expert_bias", layers, experts),
                   OpKind::update_expert_bias,
                   ScaleAttributes{1e-3F},
                   {read(shape, DType::f32, counts), update(shape, DType::f32, 2)}});
}

}  // namespace

std::vector<OperationCase> expert_cases() {
  std::vector<OperationCase> cases;
  for (const DType type : trained_types) {
    for (const int width : {1, 8, 37, 264, 2056}) append_permutations(cases, type, width, 3);
    append_permutations(cases, type, 1031, 2);
    append_permutations(cases, type, 8200, 2);
    append_permutations(cases, type, 24, 9);
    for (const int width : {3, 16}) append_regroup(cases, type, width);
  }
  append_gates(cases);
  append_routes(cases);
  append_biases(cases, 1, 8);
  append_biases(cases, 5, 384);
  const std::size_t aligned = cases.size();
  for (std::size_t i = 0; i < aligned; ++i) cases.push_back(skewed(cases[i]));
  return cases;
}

}  // namespace tandem::studies
