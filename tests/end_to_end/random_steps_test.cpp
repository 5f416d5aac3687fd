// Features mixed at random: the sharded step is the unsharded one, and folded times are unfolded ones.

#include "tests/end_to_end/random_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::random_steps_test {
namespace {

constexpr std::size_t parts = 12, least_steps = 8 * parts, least_newer_steps = 5 * parts;

/// A validation that refused more than two draws of three would thin out what is tested.
TEST(RandomSteps, UseEveryFeature) {
  const ValidSteps valid = valid_steps(least_steps);
  EXPECT_THAT(valid.unused, testing::IsEmpty());
  EXPECT_GE(valid.steps.size(), least_steps);
  EXPECT_LE(valid.drawn, 3 * least_steps);
  const auto with_experts = static_cast<std::size_t>(std::ranges::count_if(valid.steps, [](const RandomStep& step) {
    return std::ranges::find(step.overrides, "model.moe.experts=8") != step.overrides.end();
  }));
  EXPECT_GE(with_experts, least_steps / 4);
  EXPECT_GE(valid.steps.size() - with_experts, least_steps / 4);
}

TEST(RandomSteps, UseEveryNewerFeature) {
  const ValidSteps valid = valid_steps(least_newer_steps, newer_random_step);
  std::vector<std::string> unused;
  for (const std::string& one : valid.unused)
    for (const char* newer :
         {"hyper_connections", "compressed_attention", "hash_layers", "unit", "rope_scaling", "muon_tp", "_casts",
          "sums_after_weights", "reduces_amax", "tf32", "rounds_router", "heavily_compressed", "compressed_sparse"})
      if (one.find(newer) != std::string::npos) unused.push_back(one);
  EXPECT_THAT(unused, testing::IsEmpty());
  EXPECT_LE(valid.drawn, 4 * least_newer_steps);
}

/// In parts, for ctest to run side by side. A failure names the seed and the overrides.
class RandomStepsPart : public testing::TestWithParam<std::size_t> {
 protected:
  template <typename Check>
  void for_each_step(Check check) {
    std::vector<RandomStep> steps = valid_steps(least_steps).steps;
    std::ranges::move(valid_steps(least_newer_steps, newer_random_step).steps, std::back_inserter(steps));
    for (std::size_t i = GetParam(); i < steps.size(); i += parts) {
      SCOPED_TRACE(steps[i].text());
      check(tiny_cluster(steps[i].overrides));
    }
  }
};

// fp32 sums in another order, whatever the precision named: see equivalence_test.cpp. With a balance loss of 3 the routers'
// gradients are sums of large numbers of both signs, which leaves 3.5e-5 of one draw, sharded in whatever way, and 8.3e-5 of an
// expert that few tokens choose in another, whose stream goes on from the norms; without that loss nothing is left of it. The
// bias of a norm of keys without rotary positions leaves as much, whose gradient is all but zero; layers with a state leave
// more, 1.2e-4 of eight (mamba_test.cpp, gated_delta_test.cpp).
TEST_P(RandomStepsPart, AreTheUnshardedStep) {
  for_each_step(
      [](const Scenario& scenario) { EXPECT_LT(largest_difference(scenario), scenario.model.keeps_states() ? 3e-4 : 1e-4); });
}

TEST_P(RandomStepsPart, FoldToTheSameTimes) {
  for_each_step([](const Scenario& scenario) { EXPECT_GE(expect_equal_when_folded(scenario), 1U); });
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomStepsPart, testing::Range<std::size_t>(0, parts));

}  // namespace
}  // namespace tandem::studies::random_steps_test
