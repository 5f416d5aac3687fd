// The generator reaches what it says that it draws.
#include "tests/end_to_end/random_scenarios.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tandem::studies::random_scenarios_test {
namespace {

TEST(SlowRandomScenarios, UseEveryFurtherValue) {
  constexpr std::size_t scenarios = 1500;
  std::set<std::string> used;
  for (const RandomScenario& drawn : random_scenarios(scenarios, 1, 1))
    used.insert(drawn.overrides.begin(), drawn.overrides.end());
  for (const FurtherField& field : further_fields())
    for (const std::string& value : field.values)
      EXPECT_TRUE(used.contains(field.path + "=" + value)) << field.path << "=" << value;
}

TEST(RandomScenarios, AreThoseOfTheirSeeds) {
  const auto some = random_scenarios(5, 100, 3), again = random_scenarios(5, 100, 3);
  ASSERT_EQ(some.size(), 5U);
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i].text(), again[i].text());
}

}  // namespace
}  // namespace tandem::studies::random_scenarios_test
