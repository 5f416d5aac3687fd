#include "scenarios/reading/search_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::search_spec_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& block) {
  try {
    read_search(parse_yaml(block, "s.yaml"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SearchSpec, ReadsAxesConstraintsAndObjective) {
  const SearchSpec spec =
      read_search(parse_yaml("axes: {tp: [2, 4], pp: powers-of-two, recompute: [full, [norm, mlp]]}\n"
                             "gpus: [64, 500]\n"
                             "constraints: {memory_share: 0.9, bubble: 0.1, tp_in_node: true}\n"
                             "objective: {price_per_gpu_hour: 2.5}\n",
                             "s.yaml"));
  EXPECT_EQ(spec.axis(SearchAxis::tp).values.size(), 2U);
  EXPECT_TRUE(spec.axis(SearchAxis::pp).is_stated());
  EXPECT_TRUE(spec.axis(SearchAxis::pp).values.empty());
  EXPECT_EQ(spec.axis(SearchAxis::recompute).values.size(), 2U);
  EXPECT_FALSE(spec.axis(SearchAxis::zero).is_stated());
  EXPECT_EQ(spec.gpus, (std::vector<std::int64_t>{64, 128, 256}));
  EXPECT_DOUBLE_EQ(spec.constraints.memory_share, 0.9);
  EXPECT_EQ(spec.constraints.bubble, 0.1);
  EXPECT_FALSE(spec.constraints.exposed);
  EXPECT_TRUE(spec.constraints.tp_in_node);
  EXPECT_EQ(spec.objective, SearchObjective::cost_per_million_tokens);
  EXPECT_DOUBLE_EQ(spec.price_per_gpu_hour, 2.5);
}

TEST(SearchSpec, SaysWhereItIsWrong) {
  EXPECT_THAT(refusal("axes: {tpp: [1]}"), AllOf(HasSubstr("s.yaml:1:8"), HasSubstr("`tp`")));
  EXPECT_THAT(refusal("axes: {tp: []}"), AllOf(HasSubstr("search.axes.tp is empty"), HasSubstr("powers-of-two")));
  EXPECT_THAT(refusal("axes: {tp: [0]}"), HasSubstr("s.yaml:1:13"));
  EXPECT_THAT(refusal("axes: {schedule: powers-of-two}"), HasSubstr("expected a list of values"));
  EXPECT_THAT(refusal("axes: {schedule: [2f2b]}"), HasSubstr("s.yaml:1:19"));
  EXPECT_THAT(refusal("axes: {zero: [4]}"), HasSubstr("zero"));
  EXPECT_THAT(refusal("axes: {tp: [2, 2]}"), HasSubstr("lists `2` twice"));
  EXPECT_THAT(refusal("gpus: [64, 8]"), HasSubstr("a range [lowest, highest]"));
  EXPECT_THAT(refusal("constraints: {bubble: 1.5}"), HasSubstr("s.yaml:1:23"));
  EXPECT_THAT(refusal("objective: speed"), HasSubstr("step-time"));
  EXPECT_THAT(refusal("objective: {price: 3}"), HasSubstr("price_per_gpu_hour"));
}

TEST(SearchSpec, IsValidatedWithTheScenario) {
  std::string text = "search: {axes: {tp: [0]}}\n";
  for (const std::string& line : base_lines()) text += line + "\n";
  EXPECT_THROW(parse_scenario(text, "s.yaml", {}), InputError);
}

}  // namespace
}  // namespace tandem::scenarios::search_spec_test
