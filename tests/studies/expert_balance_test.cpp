// Experts out of balance: what is dropped, and from which capacity on nothing is.
#include "studies/step/expert_balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "scenarios/mesh/token_routing.h"
#include "scenarios/reading/load.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies::expert_balance_test {
namespace {

using scenarios::MoeSpec;
using scenarios::Scenario;

/// 1,000 tokens on one GPU to one of 8 experts each, 30, 5, 25, ... % of them.
Scenario worked_case(const std::vector<std::string>& options) {
  return scenarios::parse_scenario(
      "model: {layers: 2, hidden: 512, heads: 8, ffn: 1024, vocab: 4096, moe: {experts: 8, top_k: 1, load: [30, 5, 25, 10, 5, "
      "10, 10, 5]}}\n"
      "cluster: {preset: dgx-h100}\n"
      "training: {sequence: 1000, global_batch: 8}\n"
      "parallelism: {dp: 8, ep: 8}\n",
      "s.yaml", options);
}

ExpertBalance balance_of(const Scenario& scenario) {
  return studies::balance_of(scenarios::routing_of(scenario), scenarios::tokens_of_group(scenario));
}

// The even share is 125 tokens, a capacity of 1.25 of it 156.25, in whole tokens 156: 300 - 156 = 144, 250 - 156 = 94. The
// busiest expert's 300 are 2.4 times the even share.
TEST(ExpertBalance, WorkedCase) {
  const ExpertBalance balance = balance_of(worked_case({"model.moe.capacity_factor=1.25"}));
  EXPECT_EQ(balance.tokens, 1000);
  EXPECT_EQ(balance.choices, (std::vector<std::int32_t>{300, 50, 250, 100, 50, 100, 100, 50}));
  EXPECT_EQ(balance.dropped(), (std::vector<std::int32_t>{144, 0, 94, 0, 0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(balance.dropped_share(), 238 / 1000.0);
  EXPECT_DOUBLE_EQ(balance.safe_capacity_factor(), 2.4);
}

// Slots that are padded are computed: the step is as long as with 300 tokens for each expert. Without padding it is that of the
// load, whose busiest rank has as many.
TEST(ExpertBalance, StepWithoutDropsIsThatOfTheSafeFactor) {
  const auto step_of = [](const std::vector<std::string>& options) {
    return simulate_in_full(worked_case(options), true).result;
  };
  const StepResult dropping = step_of({"model.moe.capacity_factor=1.25"});
  const StepResult safe = step_of({"model.moe.capacity_factor=2.4"});
  ASSERT_TRUE(dropping.experts && dropping.experts->safe_step_time && safe.experts);
  EXPECT_EQ(*dropping.experts->safe_step_time, safe.step_time);
  EXPECT_GT(safe.step_time, dropping.step_time);
  EXPECT_EQ(safe.experts->all_dropped(), 0);
  EXPECT_FALSE(safe.experts->safe_step_time);
  const StepResult unpadded = step_of({"model.moe.capacity_factor=1.25", "model.moe.pad_to_capacity=false"});
  ASSERT_TRUE(unpadded.experts && unpadded.experts->safe_step_time);
  EXPECT_EQ(unpadded.experts->dropped(), dropping.experts->dropped());
  EXPECT_EQ(*unpadded.experts->safe_step_time, step_of({}).step_time);
  EXPECT_LT(unpadded.step_time, step_of({}).step_time);
}

TEST(ExpertBalance, IsToldOfLoadsThatAreUnevenAlone) {
  const auto told = [](const std::vector<std::string>& options) {
    return simulate_step(worked_case(options), true).result.experts.has_value();
  };
  EXPECT_TRUE(told({}));
  EXPECT_FALSE(told({"model.moe.load=uniform"}));
  EXPECT_FALSE(told({"model.moe.load=uniform", "model.moe.capacity_factor=1"}));  // as the numbers have it
  EXPECT_TRUE(told({"model.moe.load=uniform", "model.moe.routing=expert-choice"}));
}

// Each of 8 experts passes 7/8 of the tokens by: (7/8)^8 of them meet none.
TEST(ExpertBalance, ExpertsThatChooseDropNothingAndLeaveTokens) {
  const ExpertBalance balance = balance_of(worked_case({"model.moe.load=uniform", "model.moe.routing=expert-choice"}));
  EXPECT_EQ(balance.choices, std::vector<std::int32_t>(8, 125));
  EXPECT_EQ(balance.all_dropped(), 0);
  EXPECT_DOUBLE_EQ(balance.untaken_share(), std::pow(7 / 8.0, 8));
}

class RandomLoads : public testing::TestWithParam<unsigned> {};

// Choices are taken or dropped; the safe factor drops nothing, and one slot less drops of the busiest alone.
TEST_P(RandomLoads, AreConserved) {
  std::mt19937 random(GetParam());
  const auto whole = [&](std::int64_t from, std::int64_t to) { return std::uniform_int_distribution(from, to)(random); };
  MoeSpec moe;
  moe.experts = whole(2, 40);
  moe.top_k = whole(1, std::min<std::int64_t>(4, moe.experts));
  for (std::int64_t e = 0; e < moe.experts; ++e) moe.load.shares.push_back(static_cast<double>(whole(1, 20)));
  moe.pad_to_capacity = whole(0, 1) == 1;
  moe.capacity_factor = std::uniform_real_distribution(0.3, 2.0)(random);
  const std::int64_t tokens = whole(moe.experts, 3000);
  const auto balance_with = [&](double factor) {
    moe.capacity_factor = factor;
    return ExpertBalance{.tokens = tokens, .choices = choices_by_expert(moe, tokens), .slots = slots_by_expert(moe, tokens)};
  };
  const ExpertBalance balance = balance_with(moe.capacity_factor);
  std::int64_t taken = 0;
  for (std::size_t e = 0; e < balance.choices.size(); ++e) taken += std::min(balance.choices[e], balance.slots[e]);
  EXPECT_EQ(taken + balance.all_dropped(), tokens * moe.top_k);
  const double safe = balance.safe_capacity_factor();
  EXPECT_EQ(balance_with(safe).all_dropped(), 0);
  const double slot = static_cast<double>(moe.experts) / static_cast<double>(tokens * moe.top_k);
  const ExpertBalance scarce = balance_with(safe - slot / 2);
  const auto busiest = std::ranges::max(scarce.choices);
  if (busiest > 1) {
    EXPECT_EQ(scarce.all_dropped(), std::ranges::count(scarce.choices, busiest));
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomLoads, testing::Range(1U, 41U));

}  // namespace
}  // namespace tandem::studies::expert_balance_test
