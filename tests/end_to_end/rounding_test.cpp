// What a host executes in fp8 and fp4 is rounded: the same step however it is sharded, as long as no tensor is cut.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/host/compare.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::rounding_test {
namespace {

Scenario tiny_rounded(const std::string& recipe, const std::string& overrides) {
  const std::string precision = recipe == "nvfp4" ? "fp4" : "fp8";
  return tiny_cluster(
      words("cluster.preset=dgx-b200 training.precision=" + precision + " training.recipe=" + recipe + " " + overrides));
}

Verification verified(const Scenario& scenario) {
  ExecutedStep step(scenario, "test");
  step.execute();
  return verify(step, scenario);
}

class Rounding : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Rounding, IsThatOfTheUnshardedStep) {
  const auto& [recipe, overrides] = GetParam();
  const Verification verification = verified(tiny_rounded(recipe, overrides));
  EXPECT_FALSE(verification.other_rounding.has_value());
  EXPECT_LT(verification.difference.largest(), 1e-5);
}

const std::string experts = "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=32 ";

INSTANTIATE_TEST_SUITE_P(
    Recipes, Rounding,
    testing::Values(std::pair{"delayed", "parallelism.dp=2"}, std::pair{"current", "parallelism.dp=2 parallelism.zero=3"},
                    std::pair{"blockwise", "parallelism.pp=2 parallelism.dp=2"},
                    std::pair{"mxfp8", "parallelism.pp=2 training.schedule=zb-h1 parallelism.dp=2"},
                    std::pair{"nvfp4", "parallelism.pp=2 parallelism.dp=2 training.first_last_layers_bf16=true"},
                    std::pair{"nvfp4", "parallelism.pp=2 training.schedule=zb-h1 training.recompute=full"},
                    std::pair{"nvfp4", "parallelism.dp=2 model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=32"}));

/// How far rounding takes the unsharded step's gradients from those that nothing was rounded for: of half of the tensors, less.
/// Those of queries and keys, differences of nearly equal numbers, may lose all.
double error_of(const std::string& recipe, const std::string& overrides = "") {
  const Scenario scenario = tiny_rounded(recipe, overrides);
  ExecutedStep rounded(scenario, "test");
  ExecutedStep exact(scenario, "test", {.rounds = false});
  rounded.execute();
  exact.execute();
  std::vector<double> errors;
  for (const TensorDifference& tensor : compare(rounded.memory(), exact.memory()).tensors) errors.push_back(tensor.gradient);
  std::ranges::nth_element(errors, errors.begin() + std::ssize(errors) / 2);
  return errors[errors.size() / 2];
}

// A number of e4m3 has three bits after its first, one of e2m1 one: a gradient of a few products is off by more in fp4. Neither
// loses it, as it would where scales were wrong.
TEST(RoundedStep, IsOffByThePrecision) {
  for (const char* recipe : {"delayed", "current", "blockwise", "mxfp8"}) {
    EXPECT_GT(error_of(recipe), 1e-3) << recipe;
    EXPECT_LT(error_of(recipe), 0.3) << recipe;
  }
  EXPECT_EQ(error_of("delayed"), error_of("current"));  // scales of earlier steps are taken to be today's
  EXPECT_GT(error_of("nvfp4"), error_of("mxfp8"));
  EXPECT_LT(error_of("nvfp4"), 1);
  EXPECT_EQ(error_of("nvfp4",
                     "training.first_last_layers_bf16=true training.num_layers_at_start_in_bf16=4 "
                     "training.num_layers_at_end_in_bf16=0"),
            0);
}

// Where shards are cast by themselves their scales are others. What is compared is then the flow of the data, and the difference
// is said beside.
TEST(RoundedStep, SaysWhereShardingCutsTensors) {
  const Verification cut = verified(tiny_rounded("current", "parallelism.tp=2 parallelism.sp=true parallelism.dp=2"));
  ASSERT_TRUE(cut.other_rounding.has_value());
  EXPECT_THAT(cut.other_rounding->causes, testing::ElementsAre("tp 2 cuts weights and activations"));
  EXPECT_GT(cut.other_rounding->difference, 1e-4);
  EXPECT_LT(cut.other_rounding->difference, 0.5);
  EXPECT_TRUE(cut.same());
  EXPECT_LT(cut.difference.largest(), 1e-5);
  EXPECT_THAT(causes_of_other_rounding(tiny_rounded("mxfp8", experts + "parallelism.dp=2 parallelism.ep=2 parallelism.cp=1")),
              testing::ElementsAre(testing::HasSubstr("ep 2 gives experts the rows of several micro-batches")));
  EXPECT_TRUE(causes_of_other_rounding(tiny_cluster(words("parallelism.tp=2"))).empty());
}

}  // namespace
}  // namespace tandem::studies::rounding_test
