// Routing, permutation and grouped products: gradients by finite differences, worked cases, and rules that hold for any input.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_experts_test {
namespace {

struct Chosen {
  Tensor gates;
  Ids slots;
};

Chosen route(Tensor& logits, const RoutingAttributes& routing) {
  const Shape per_choice(logits.shape[0], routing.top_k);
  Chosen chosen{Tensor(per_choice), Ids(per_choice, 0)};
  run(OpKind::route, routing, {logits.host(), chosen.gates.host(), chosen.slots.host()});
  return chosen;
}

// A token's number chooses: k different experts, the same wherever it stands, one of each of k ranges; their gates are those of
// the logits.
TEST(Route, HashesTokens) {
  constexpr std::int64_t count = 64, experts = 7, k = 3;
  const RoutingAttributes routing{.top_k = k,
                                  .block = experts * count,
                                  .slots = std::vector<std::int32_t>(experts, count),
                                  .score = ScoreFunction::sqrtsoftplus,
                                  .hashed = true};
  Tensor logits = random_tensor(Shape(count, experts), 1), gates(Shape(count, k));
  Ids tokens = random_ids(Shape(count), 20, 2), slots(Shape(count, k), 0);
  run(OpKind::route, routing, {logits.host(), tokens.host(), gates.host(), slots.host()});
  std::map<std::int32_t, std::vector<std::int32_t>> chosen_by;
  std::set<std::int32_t> all;
  for (std::int64_t t = 0; t < count; ++t) {
    std::vector<std::int32_t> chosen;
    double sum = 0;
    const auto score = [&](std::int32_t e) { return std::sqrt(std::log1p(std::exp(double{logits[t * experts + e]}))); };
    for (std::int64_t j = 0; j < k; ++j) {
      const std::int32_t e = slots[t * k + j] / static_cast<std::int32_t>(count);
      EXPECT_GE(e, j * experts / k);
      EXPECT_LT(e, (j + 1) * experts / k);
      chosen.push_back(e);
      sum += score(e);
    }
    for (std::int64_t j = 0; j < k; ++j) EXPECT_NEAR(gates[t * k + j], score(chosen[static_cast<std::size_t>(j)]) / sum, 1e-6);
    all.insert(chosen.begin(), chosen.end());
    EXPECT_EQ(chosen_by.try_emplace(tokens[t], chosen).first->second, chosen);
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(experts));
}

/// Logits that send `shares` of the tokens to each expert, top-1, the first tokens to the first expert.
Tensor logits_with_shares(std::int64_t tokens, const std::vector<double>& shares) {
  Tensor logits(Shape(tokens, static_cast<std::int64_t>(shares.size())), 0.0F);
  std::int64_t t = 0;
  for (std::size_t e = 0; e < shares.size(); ++e) {
    const auto end = t + std::llround(shares[e] * static_cast<double>(tokens));
    for (; t < end; ++t) logits[t * static_cast<std::int64_t>(shares.size()) + static_cast<std::int64_t>(e)] = 5;
  }
  return logits;
}

std::map<std::int32_t, int> dropped_by_expert(const Chosen& chosen) {
  std::map<std::int32_t, int> dropped;
  for (const std::int32_t slot : chosen.slots.values) {
    if (slot < 0) ++dropped[-1 - slot];
  }
  return dropped;
}

const std::vector<double> worked_shares{0.30, 0.05, 0.25, 0.10, 0.05, 0.10, 0.10, 0.05};

// 1,000 tokens, 8 experts: 1.25 * 1000 / 8 = 156.25 slots, in whole ones 156. 300 - 156 = 144, 250 - 156 = 94.
TEST(Route, DropsWhatExceedsTheCapacity) {
  Tensor logits = logits_with_shares(1000, worked_shares);
  const Chosen chosen = route(logits, {.top_k = 1, .block = 8 * 156, .slots = std::vector<std::int32_t>(8, 156)});
  EXPECT_EQ(dropped_by_expert(chosen), (std::map<std::int32_t, int>{{0, 144}, {2, 94}}));
}

// The busiest expert has 300 tokens, 2.4 fair shares of 125; a slot less, and one is dropped.
TEST(Route, DropsNothingFromTheBusiestExpertsShareOn) {
  Tensor logits = logits_with_shares(1000, worked_shares);
  const auto dropped = [&](std::int32_t slots) {
    return dropped_by_expert(route(logits, {.top_k = 1, .block = 8 * slots, .slots = std::vector<std::int32_t>(8, slots)}));
  };
  EXPECT_TRUE(dropped(300).empty());
  EXPECT_EQ(dropped(299), (std::map<std::int32_t, int>{{0, 1}}));
}

TEST(Route, FillsSlotsInTheOrderOfTokensAndGroups) {
  Tensor logits = logits_with_shares(8, {0.5, 0.5});
  // Two groups of four tokens, one part; the first four tokens choose expert 0, which has two slots per group.
  const Chosen chosen = route(logits, {.top_k = 1, .groups = 2, .block = 5, .slots = {2, 3}});
  EXPECT_EQ(chosen.slots.values, (std::vector<std::int32_t>{0, 1, -1, -1, 5 + 2, 5 + 3, 5 + 4, -2}));
  // Two parts of one expert each: a block of three slots for each pair of part and group.
  const Chosen parted = route(logits, {.top_k = 1, .groups = 2, .parts = 2, .block = 3, .slots = {2, 3}});
  EXPECT_EQ(parted.slots.values, (std::vector<std::int32_t>{0, 1, -1, -1, 9, 10, 11, -2}));
}

// Two zigzag ranks hold chunks 0 and 3, and 1 and 2, of four; one token each, and one slot per group.
TEST(Route, GroupsOfAZigzagAreTakenFromBothEnds) {
  Tensor logits = logits_with_shares(4, {1.0, 0.0});
  const Chosen chosen = route(logits, {.top_k = 1, .groups = 2, .zigzag = 2, .block = 2, .slots = {1, 1}});
  EXPECT_EQ(chosen.slots.values, (std::vector<std::int32_t>{0, 2, -1, -1}));
}

TEST(Route, ForcedLoadsAreExactAndExpertsOfATokenDiffer) {
  Tensor logits = random_tensor(Shape(16, 6), 3);
  const RoutingAttributes routing{.top_k = 3, .parts = 2, .block = 30, .forced = true, .slots = {16, 4, 10, 0, 2, 16}};
  const Chosen chosen = route(logits, routing);
  const std::vector<std::int32_t> first{0, 16, 20, 30, 30, 32, 48};  // of each expert; part 1 begins at slot 30
  std::vector<int> count(6, 0);
  for (std::int64_t t = 0; t < 16; ++t) {
    std::set<std::size_t> experts;
    for (std::int64_t j = 0; j < 3; ++j) {
      const std::int32_t slot = chosen.slots[t * 3 + j];
      ASSERT_GE(slot, 0);
      const auto e = static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), slot) - first.begin() - 1);
      experts.insert(e);
      ++count[e];
    }
    EXPECT_EQ(experts.size(), 3U);
  }
  EXPECT_EQ(std::set<std::int32_t>(chosen.slots.values.begin(), chosen.slots.values.end()).size(), 48U);
  EXPECT_EQ(count, (std::vector<int>{16, 4, 10, 0, 2, 16}));
}

// The worked shares forced on 1,000 tokens: 144 and 94 choices find no slot, those of the last tokens that chose the expert.
TEST(Route, ForcedLoadsDropWhatExceedsTheSlots) {
  Tensor logits = random_tensor(Shape(1000, 8), 3);
  const RoutingAttributes routing{.top_k = 1,
                                  .block = 8 * 156,
                                  .forced = true,
                                  .slots = std::vector<std::int32_t>(8, 156),
                                  .load = {300, 50, 250, 100, 50, 100, 100, 50}};
  const Chosen chosen = route(logits, routing);
  EXPECT_EQ(dropped_by_expert(chosen), (std::map<std::int32_t, int>{{0, 144}, {2, 94}}));
  EXPECT_EQ(chosen.slots[155], 155);
  EXPECT_EQ(chosen.slots[156], -1);
  EXPECT_EQ(chosen.slots[300], 156);
}

class ExpertChoice : public testing::TestWithParam<unsigned> {};

// Every expert has all its slots taken, by the tokens of its highest probabilities; all others have lower ones or come later.
TEST_P(ExpertChoice, FillsEveryExpertWithItsBestTokens) {
  const std::int64_t tokens = 30, experts = 6, of_group = tokens / 2;
  Tensor logits = random_tensor(Shape(tokens, experts), GetParam());
  for (std::int64_t e = 0; e < experts; ++e) logits[7 * experts + e] = logits[2 * experts + e];  // a tie, which 2 wins
  const std::int32_t slots = 1 + static_cast<std::int32_t>(GetParam()) % 15;
  const RoutingAttributes routing{.top_k = 6,
                                  .groups = 2,
                                  .parts = 3,
                                  .block = 2 * slots,
                                  .slots = std::vector<std::int32_t>(6, slots),
                                  .expert_choice = true};
  const Chosen chosen = route(logits, routing);
  std::set<std::int32_t> taken;
  for (std::int64_t group = 0; group < 2; ++group) {
    for (std::int64_t e = 0; e < experts; ++e) {
      float worst_taken = 1, best_left = 0;
      std::int32_t next = static_cast<std::int32_t>((e / 2 * 2 + group) * 2 * slots + e % 2 * slots);
      for (std::int64_t t = group * of_group; t < (group + 1) * of_group; ++t) {
        const float gate = chosen.gates[t * experts + e];
        const std::int32_t slot = chosen.slots[t * experts + e];
        if (slot < 0) {
          EXPECT_EQ(slot, -1 - e);
          best_left = std::max(best_left, gate);
        } else {
          EXPECT_EQ(slot, next++);  // in the order of the tokens
          taken.insert(slot);
          worst_taken = std::min(worst_taken, gate);
        }
      }
      EXPECT_GE(worst_taken, best_left);
    }
  }
  EXPECT_EQ(taken.size(), static_cast<std::size_t>(2 * experts * slots));
  for (std::int64_t e = 0; e < experts; ++e) {
    if (chosen.slots[7 * experts + e] >= 0) {
      EXPECT_GE(chosen.slots[2 * experts + e], 0);
    }
  }
}

// Gates are probabilities of all experts; those of experts that passed a token by reach nothing.
TEST_P(ExpertChoice, GradientIsThatOfTheGatesOfWhoTook) {
  const std::int64_t tokens = 8, experts = 4;
  Tensor logits = random_tensor(Shape(tokens, experts), GetParam()), dlogits(logits.shape);
  Tensor dgates = random_tensor(logits.shape, GetParam() + 100);
  const RoutingAttributes routing{.top_k = 4, .block = 12, .balance = 0.5F, .slots = {3, 3, 3, 3}, .expert_choice = true};
  Chosen chosen = route(logits, routing);
  const auto loss = [&] {
    double sum = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      double total = 0;
      for (std::int64_t e = 0; e < experts; ++e) total += std::exp(logits[t * experts + e]);
      for (std::int64_t e = 0; e < experts; ++e)
        if (chosen.slots[t * experts + e] >= 0) sum += dgates[t * experts + e] * std::exp(logits[t * experts + e]) / total;
    }
    return sum;
  };
  run(OpKind::route_backward, routing, {logits.host(), chosen.slots.host(), dgates.host(), dlogits.host()});
  expect_gradient_of(loss, logits, dlogits);
}
INSTANTIATE_TEST_SUITE_P(Route, ExpertChoice, testing::Range(1U, 21U));

class NodeLimit : public testing::TestWithParam<bool> {};

// 16 experts in 4 nodes, 4 choices per token in at most 2 nodes.
TEST_P(NodeLimit, KeepsATokensExpertsTogether) {
  Tensor logits = random_tensor(Shape(32, 16), 5);
  const RoutingAttributes routing{.top_k = 4,
                                  .block = 32 * 16,
                                  .nodes = 4,
                                  .node_limit = 2,
                                  .forced = GetParam(),
                                  .slots = std::vector<std::int32_t>(16, GetParam() ? 8 : 32)};
  const Chosen chosen = route(logits, routing);
  std::vector<int> count(16, 0);
  for (std::int64_t t = 0; t < 32; ++t) {
    std::set<std::int32_t> nodes, experts;
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int32_t expert = chosen.slots[t * 4 + j] / routing.slots[0];
      ++count[static_cast<std::size_t>(expert)];
      experts.insert(expert);
      nodes.insert(expert / 4);
    }
    EXPECT_EQ(experts.size(), 4U);
    EXPECT_LE(nodes.size(), 2U);
  }
  if (GetParam()) {
    EXPECT_EQ(count, std::vector<int>(16, 8));
  }
}
INSTANTIATE_TEST_SUITE_P(Route, NodeLimit, testing::Bool());

// Loads of 16 tokens' 4 choices in at most 2 of 3 nodes of 4 experts: 16, 10 and 6 visits with 2 choices each.
TEST(Route, ForcedLoadsUnderANodeLimitAreExact) {
  const std::vector<std::int32_t> slots{16, 1, 7, 8, 0, 10, 9, 1, 3, 3, 6, 0};
  Tensor logits = random_tensor(Shape(16, 12), 6);
  const Chosen chosen = route(logits, {.top_k = 4, .block = 64, .nodes = 3, .node_limit = 2, .forced = true, .slots = slots});
  std::vector<std::int32_t> first{0}, count(12, 0);
  for (const std::int32_t n : slots) first.push_back(first.back() + n);
  for (std::int64_t t = 0; t < 16; ++t) {
    std::set<std::ptrdiff_t> experts, nodes;
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::ptrdiff_t e = std::upper_bound(first.begin(), first.end(), chosen.slots[t * 4 + j]) - first.begin() - 1;
      experts.insert(e);
      nodes.insert(e / 4);
      ++count[static_cast<std::size_t>(e)];
    }
    EXPECT_EQ(experts.size(), 4U);
    EXPECT_EQ(nodes.size(), 2U);
  }
  EXPECT_EQ(count, slots);
  EXPECT_EQ(std::set<std::int32_t>(chosen.slots.values.begin(), chosen.slots.values.end()).size(), 64U);
}

// Two nodes of three experts, two choices. The best expert is in node 0, but node 1's best two have the higher sum with two
// counted (limit 1); three nodes of two with limit 2 count the best of each: nodes 1 and 2, whose best two are both in node 2.
TEST(Route, NodesAreChosenByTheSumOfTheirBestExperts) {
  Tensor logits(Shape(1, 6));
  logits.values = {5, 0, 0, 3, 4, 1};
  const std::vector<std::int32_t> one_each(6, 1);
  EXPECT_EQ(route(logits, {.top_k = 2, .block = 6, .nodes = 2, .node_limit = 1, .slots = one_each}).slots.values,
            (std::vector<std::int32_t>{4, 3}));
  EXPECT_EQ(
      route(logits, {.top_k = 2, .block = 6, .nodes = 2, .node_limit = 1, .slots = one_each, .best_of_node = 1}).slots.values,
      (std::vector<std::int32_t>{0, 1}));  // of equal ones the first
  logits.values = {1, 1, 2, 0, 4, 3};
  EXPECT_EQ(route(logits, {.top_k = 3, .block = 6, .nodes = 3, .node_limit = 2, .slots = one_each}).slots.values,
            (std::vector<std::int32_t>{4, 5, 2}));
}

Chosen route_biased(Tensor& logits, Tensor& bias, RoutingAttributes routing) {
  routing.biased = true;
  const Shape per_choice(logits.shape[0], routing.top_k);
  Chosen chosen{Tensor(per_choice), Ids(per_choice, 0)};
  run(OpKind::route, routing, {logits.host(), bias.host(), chosen.gates.host(), chosen.slots.host()});
  return chosen;
}

double logit_of(double sigmoid) { return std::log(sigmoid / (1 - sigmoid)); }

// Sigmoids 0.2, 0.8, 0.4 and 0.6: the best two are 0.8 and 0.6, of whose sum 1.4 the gates are shares, times the factor. Alone,
// the gate is 0.8.
TEST(Route, GatesOfSigmoidsAreSharesOfTheChosen) {
  Tensor logits(Shape(1, 4));
  for (const auto& [e, s] : {std::pair{0, 0.2}, {1, 0.8}, {2, 0.4}, {3, 0.6}}) logits[e] = static_cast<float>(logit_of(s));
  RoutingAttributes routing{.top_k = 2, .block = 4, .slots = {1, 1, 1, 1}, .score = ScoreFunction::sigmoid, .scaling = 2.5F};
  const Chosen two = route(logits, routing);
  EXPECT_EQ(two.slots.values, (std::vector<std::int32_t>{1, 3}));
  EXPECT_NEAR(two.gates[0], 2.5 * 0.8 / 1.4, 1e-6);
  EXPECT_NEAR(two.gates[1], 2.5 * 0.6 / 1.4, 1e-6);
  routing.top_k = 1;
  EXPECT_NEAR(route(logits, routing).gates[0], 2.5 * 0.8, 1e-6);
}

// Probabilities 0.1, 0.4, 0.2 and 0.3.
TEST(Route, GatesOfPreSoftmaxAreProbabilitiesOfAll) {
  Tensor logits(Shape(1, 4));
  for (const auto& [e, p] : {std::pair{0, 0.1}, {1, 0.4}, {2, 0.2}, {3, 0.3}}) logits[e] = static_cast<float>(std::log(p));
  RoutingAttributes routing{.top_k = 2, .block = 4, .slots = {1, 1, 1, 1}, .pre_softmax = true, .scaling = 3};
  const Chosen chosen = route(logits, routing);
  EXPECT_EQ(chosen.slots.values, (std::vector<std::int32_t>{1, 3}));
  EXPECT_NEAR(chosen.gates[0], 3 * 0.4, 1e-6);
  EXPECT_NEAR(chosen.gates[1], 3 * 0.3, 1e-6);
}

// Sigmoids as above; 0.5 for expert 0 and -0.5 for expert 1 turn the choice to 0 and 3, whose gates are of their sigmoids alone.
TEST(Route, BiasesCountInTheChoiceAlone) {
  Tensor logits(Shape(1, 4)), bias(Shape(4));
  for (const auto& [e, s] : {std::pair{0, 0.2}, {1, 0.8}, {2, 0.4}, {3, 0.6}}) logits[e] = static_cast<float>(logit_of(s));
  bias.values = {0.5, -0.5, 0, 0};
  const Chosen chosen =
      route_biased(logits, bias, {.top_k = 2, .block = 4, .slots = {1, 1, 1, 1}, .score = ScoreFunction::sigmoid});
  EXPECT_EQ(chosen.slots.values, (std::vector<std::int32_t>{0, 3}));
  EXPECT_NEAR(chosen.gates[0], 0.2 / 0.8, 1e-6);
  EXPECT_NEAR(chosen.gates[1], 0.6 / 0.8, 1e-6);
}

// Two groups of three, two choices in one of them: the logits of group 0 have the higher sum of their best two (9 against 3), its
// sigmoids the lower one (1.0 against 1.6), and its biased sigmoids the higher one again.
TEST(Route, GroupsAreChosenByTheSumOfTheirBestScores) {
  Tensor logits(Shape(1, 6)), bias(Shape(6));
  logits.values = {12, -3, -5, 1.5, 1.5, -9};
  RoutingAttributes routing{.top_k = 2, .block = 6, .nodes = 2, .node_limit = 1, .slots = {1, 1, 1, 1, 1, 1}};
  EXPECT_EQ(route(logits, routing).slots.values, (std::vector<std::int32_t>{0, 1}));
  routing.score = ScoreFunction::sigmoid;
  EXPECT_EQ(route(logits, routing).slots.values, (std::vector<std::int32_t>{3, 4}));
  bias.values = {0, 0, 0.9F, 0, 0, 0};
  EXPECT_EQ(route_biased(logits, bias, routing).slots.values, (std::vector<std::int32_t>{0, 2}));
}

// Choices of experts 2, 0, 2 and, dropped, 1.
TEST(ExpertBias, CountsAllChoicesOfEachExpert) {
  Ids slots(Shape(2, 2), 0);
  slots.values = {2, 0, 3, -2};  // expert 2 has slots 2 and 3
  Tensor counts(Shape(3));
  counts.values = {10, 0, 0};
  run(OpKind::count_choices, RoutingAttributes{.top_k = 2, .block = 4, .slots = {1, 1, 2}}, {slots.host(), counts.host()});
  EXPECT_EQ(counts.values, (std::vector<float>{11, 1, 2}));
}

// Means of 4 and 2: what is above loses the rate, what is below gains it, what is at the mean stays.
TEST(ExpertBias, MovesAgainstTheLoadOfItsLayer) {
  Tensor counts(Shape(2, 3)), bias(Shape(2, 3));
  counts.values = {7, 4, 1, 0, 6, 0};
  bias.values = {0.5F, 0.25F, 0, 1, 1, 1};
  run(OpKind::update_expert_bias, ScaleAttributes{0.125F}, {counts.host(), bias.host()});
  EXPECT_EQ(bias.values, (std::vector<float>{0.375F, 0.25F, 0.125F, 1.125F, 0.875F, 1.125F}));
}

class RouteGradient : public testing::TestWithParam<int> {};
class RouterGradient : public testing::TestWithParam<std::tuple<int, ScoreFunction, bool>> {};

// Written down from the definitions, in double: forced choices, so that they do not jump with the logits.
TEST_P(RouterGradient, IsThatOfGatesAndBalanceLoss) {
  const auto [k, score, pre_softmax] = GetParam();
  const std::int64_t tokens = 6, experts = 4;
  const RoutingAttributes routing{.top_k = k,
                                  .block = 24,
                                  .forced = true,
                                  .balance = 0.25F,
                                  .slots = {2 * k, 2 * k, k, k},
                                  .score = score,
                                  .pre_softmax = pre_softmax,
                                  .scaling = 1.75F};
  Tensor logits = random_tensor(Shape(tokens, experts), 1), dlogits(logits.shape), dgates = random_tensor(Shape(tokens, k), 2);
  Chosen chosen = route(logits, routing);
  const auto expert = [&](std::int64_t choice) {
    std::int32_t e = 0, end = routing.slots[0];
    while (chosen.slots[choice] >= end) end += routing.slots[static_cast<std::size_t>(++e)];
    return e;
  };
  const auto weight = [&](std::int64_t t, std::int64_t e) {
    const double z = logits[t * experts + e];
    if (score == ScoreFunction::sqrtsoftplus) return std::sqrt(std::log(1 + std::exp(z)));
    return score == ScoreFunction::sigmoid ? 1 / (1 + std::exp(-z)) : std::exp(z);
  };
  const auto loss = [&] {
    double sum = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      double of_all = 0, of_chosen = 0;
      for (std::int64_t e = 0; e < experts; ++e) of_all += weight(t, e);
      for (std::int64_t j = 0; j < k; ++j) of_chosen += weight(t, expert(t * k + j));
      const double one = score != ScoreFunction::softmax ? 1 : of_all;
      const double divisor = pre_softmax ? of_all : k == 1 ? one : of_chosen;
      for (std::int64_t j = 0; j < k; ++j) {
        const double gate = 1.75 * weight(t, expert(t * k + j)) / divisor;
        EXPECT_NEAR(route(logits, routing).gates[t * k + j], gate, 1e-5);
        sum += dgates[t * k + j] * gate;
      }
      for (std::int64_t e = 0; e < experts; ++e)
        sum += 0.25 * 4 * (routing.slots[static_cast<std::size_t>(e)] / (6.0 * k)) * weight(t, e) / of_all;
    }
    return sum;
  };
  run(OpKind::route_backward, routing, {logits.host(), chosen.slots.host(), dgates.host(), dlogits.host()});
  expect_gradient_of(loss, logits, dlogits);
}
INSTANTIATE_TEST_SUITE_P(
    Route, RouterGradient,
    testing::Values(std::tuple{1, ScoreFunction::softmax, false}, std::tuple{2, ScoreFunction::softmax, false},
                    std::tuple{1, ScoreFunction::softmax, true}, std::tuple{2, ScoreFunction::softmax, true},
                    std::tuple{1, ScoreFunction::sigmoid, false}, std::tuple{3, ScoreFunction::sigmoid, false},
                    std::tuple{1, ScoreFunction::sqrtsoftplus, false}, std::tuple{3, ScoreFunction::sqrtsoftplus, false}));

// Two sequences take turns in the rows, of which the other half of each is elsewhere: its choices are in the counts.
TEST(RouteBySequence, GradientIsThatOfEachSequencesBalanceLoss) {
  const std::int64_t tokens = 8, experts = 4, k = 2, sequences = 2, whole = 8;
  const RoutingAttributes routing{.top_k = 2,
                                  .block = 16,
                                  .forced = true,
                                  .balance = 0.25F,
                                  .slots = {7, 3, 4, 2},
                                  .sequences = sequences,
                                  .sequence = whole};
  Tensor logits = random_tensor(Shape(tokens, experts), 1), dlogits(logits.shape), dgates{Shape(tokens, k), 0.0F};
  Chosen chosen = route(logits, routing);
  Tensor counts{Shape(sequences, experts)};
  run(OpKind::count_by_sequence, routing, {chosen.slots.host(), counts.host()});
  EXPECT_EQ(std::accumulate(counts.values.begin(), counts.values.end(), 0.0F), static_cast<float>(tokens * k));
  for (std::int64_t e = 0; e < experts; ++e) {
    EXPECT_EQ(counts[e] + counts[experts + e], static_cast<float>(routing.slots[static_cast<std::size_t>(e)]));
    counts[e] += static_cast<float>(e);  // of the first sequence's half that is elsewhere
    counts[experts + e] += 2;
  }
  const auto loss = [&] {
    double sum = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      double total = 0;
      for (std::int64_t e = 0; e < experts; ++e) total += std::exp(logits[t * experts + e]);
      for (std::int64_t e = 0; e < experts; ++e)
        sum += 0.25 * experts * counts[t % sequences * experts + e] / (whole * k) * std::exp(logits[t * experts + e]) / total;
    }
    return sum;
  };
  run(OpKind::route_backward, routing, {logits.host(), chosen.slots.host(), counts.host(), dgates.host(), dlogits.host()});
  expect_gradient_of(loss, logits, dlogits);
}

// The gates weighted at random, plus the balance loss of both groups; forced, so that choices do not jump with the logits.
TEST_P(RouteGradient, IsThatOfGatesAndBalanceLoss) {
  const std::int32_t k = GetParam();
  const std::int64_t tokens = 12, experts = 4;
  RoutingAttributes routing{.top_k = k, .groups = 2, .forced = true, .balance = 0.25F, .slots = {}};
  routing.slots = {3 * k - 3, 3 * k - 1, 0, 4};
  routing.slots[2] = 6 * k - routing.slots[0] - routing.slots[1] - routing.slots[3];
  routing.block = 6 * k;
  Tensor logits = random_tensor(Shape(tokens, experts), 1), dlogits(logits.shape);
  Tensor dgates = random_tensor(Shape(tokens, k), 2);
  const auto loss = [&] {
    const Chosen chosen = route(logits, routing);
    double sum = dot(chosen.gates, dgates);
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<double> p;
      double total = 0;
      for (std::int64_t e = 0; e < experts; ++e) total += p.emplace_back(std::exp(logits[t * experts + e]));
      for (std::size_t e = 0; e < p.size(); ++e) sum += 0.25 * 4 * (routing.slots[e] / (6.0 * k)) * p[e] / total;
    }
    return sum;
  };
  Chosen chosen = route(logits, routing);
  run(OpKind::route_backward, routing, {logits.host(), chosen.slots.host(), dgates.host(), dlogits.host()});
  expect_gradient_of(loss, logits, dlogits);
}
INSTANTIATE_TEST_SUITE_P(Route, RouteGradient, testing::Values(1, 2));

TEST(Combine, GradientsAreThoseOfPermuteAndCombine) {
  Tensor x = random_tensor(Shape(3, 5), 1), rows(Shape(6, 5)), y(x.shape), dy = random_tensor(Shape(3, 5), 2);
  Tensor gates = random_tensor(Shape(3, 2), 3), drows(rows.shape), dgates(gates.shape), dx(x.shape);
  Ids slots(Shape(3, 2), 0);
  slots.values = {4, 0, 2, -1, 1, 5};  // slot 3 stays empty, a choice of token 1 was dropped
  const auto loss = [&] {
    run(OpKind::permute, {}, {x.host(), slots.host(), rows.host()});
    run(OpKind::combine, {}, {rows.host(), slots.host(), gates.host(), y.host()});
    return dot(y, dy);
  };
  loss();
  EXPECT_EQ(rows[3 * 5], 0.0F);
  run(OpKind::combine_backward, {}, {dy.host(), rows.host(), slots.host(), gates.host(), drows.host(), dgates.host()});
  run(OpKind::permute_backward, {}, {drows.host(), slots.host(), dx.host()});
  expect_gradient_of(loss, gates, dgates);
  expect_gradient_of(loss, x, dx);
}

// Choices as tokens of width 1: gates become weights of rows. A row that nobody took weighs nothing, a dropped choice has no
// gradient.
TEST(Permute, TakesGatesToTheirRowsAndGradientsBack) {
  Tensor gates(Shape(6, 1)), rows(Shape(7, 1)), drows(Shape(7, 1)), dgates(Shape(6, 1));
  gates.values = {1, 2, 3, 4, 5, 6};
  drows.values = {10, 11, 12, 13, 14, 15, 16};
  Ids slots(Shape(6, 1), 0);
  slots.values = {4, 0, 2, -1, 1, 5};
  run(OpKind::permute, {}, {gates.host(), slots.host(), rows.host()});
  EXPECT_EQ(rows.values, (std::vector<float>{2, 5, 3, 0, 1, 6, 0}));
  run(OpKind::permute_backward, {}, {drows.host(), slots.host(), dgates.host()});
  EXPECT_EQ(dgates.values, (std::vector<float>{14, 10, 12, 0, 11, 15}));
}

// Weighting rows where they are made, and adding them up unweighted, is the combination by the gates.
TEST(Permute, SumsWeightedRowsAsCombineDoes) {
  Tensor rows = random_tensor(Shape(7, 5), 1), gates = random_tensor(Shape(3, 2), 2), combined(Shape(3, 5)), summed(Shape(3, 5));
  Tensor weights(Shape(7, 1));
  Ids slots(Shape(3, 2), 0);
  slots.values = {4, 0, 2, -1, 1, 5};
  run(OpKind::combine, {}, {rows.host(), slots.host(), gates.host(), combined.host()});
  run(OpKind::permute, {},
      {HostTensor{gates.values.data(), Shape(6, 1)}, HostTensor{slots.values.data(), Shape(6, 1)}, weights.host()});
  for (std::int64_t i = 0; i < rows.size(); ++i) rows[i] *= weights[i / 5];
  run(OpKind::permute_backward, {}, {rows.host(), slots.host(), summed.host()});
  EXPECT_EQ(summed.values, combined.values);
}

TEST(Regroup, SortsByExpertAndBack) {
  // Two blocks of four rows: expert 0 has one, expert 1 two, one is padding.
  Tensor x(Shape(8, 1)), y(Shape(6, 1)), back(x.shape);
  x.values = {1, 2, 3, 0, 4, 5, 6, 0};
  RegroupAttributes attributes{.blocks = 2, .block = 4, .rows = {1, 2}};
  run(OpKind::regroup, attributes, {x.host(), y.host()});
  EXPECT_EQ(y.values, (std::vector<float>{1, 4, 2, 3, 5, 6}));
  attributes.inverse = true;
  run(OpKind::regroup, attributes, {y.host(), back.host()});
  EXPECT_EQ(back.values, x.values);
}

TEST(GroupedGemm, GradientsByFiniteDifferences) {
  const std::vector<std::int32_t> rows{2, 0, 3};
  Tensor x = random_tensor(Shape(5, 4), 1), w = random_tensor(Shape(3 * 2, 4), 2), y(Shape(5, 2)), dy = random_tensor(y.shape, 3);
  Tensor dx(x.shape), dw(w.shape, 0.0F);
  const auto loss = [&] {
    run(OpKind::grouped_gemm, GroupedGemmAttributes{.transpose_b = true, .rows = rows}, {x.host(), w.host(), y.host()});
    return dot(y, dy);
  };
  run(OpKind::grouped_gemm, GroupedGemmAttributes{.rows = rows}, {dy.host(), w.host(), dx.host()});
  run(OpKind::grouped_gemm, GroupedGemmAttributes{.transpose_a = true, .accumulate = true, .rows = rows},
      {dy.host(), x.host(), dw.host()});
  expect_gradient_of(loss, x, dx);
  expect_gradient_of(loss, w, dw);
}

// 2 R n k, whichever expert the rows belong to; every operand once, an updated one twice.
TEST(GroupedGemm, Cost) {
  const OperandType x{Shape(5, 4), DType::bf16}, w{Shape(6, 4), DType::bf16}, y{Shape(5, 2), DType::bf16},
      dw{Shape(6, 4), DType::f32};
  const OpCost forward = cost(OpKind::grouped_gemm, GroupedGemmAttributes{.transpose_b = true, .rows = {2, 0, 3}}, {x, w, y});
  EXPECT_EQ(forward.flops, 2 * 5 * 2 * 4);
  EXPECT_EQ(forward.math, DType::bf16);
  EXPECT_EQ(forward.bytes, 2 * (20 + 24 + 10));
  const OpCost backward =
      cost(OpKind::grouped_gemm, GroupedGemmAttributes{.transpose_a = true, .accumulate = true, .rows = {2, 0, 3}}, {y, x, dw});
  EXPECT_EQ(backward.flops, forward.flops);
  EXPECT_EQ(backward.bytes, 2 * (10 + 20) + 2 * 4 * 24);
}

}  // namespace
}  // namespace tandem::ops_experts_test
