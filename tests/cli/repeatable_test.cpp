// Two simulations of one scenario leave the same bytes, except for what the run itself cost.
#include <gtest/gtest.h>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::repeatable_test {
namespace {

class Repeatable : public testing::TestWithParam<std::string> {};

TEST_P(Repeatable, SameResultAndTraces) {
  const TemporaryFolder folder;
  for (const std::string& format : {std::string("pftrace"), std::string("json")}) {
    const auto result = [&](int attempt) { return folder / (format + std::to_string(attempt) + ".result"); };
    const auto trace = [&](int attempt) { return folder / (std::to_string(attempt) + "." + format); };
    for (const int attempt : {1, 2}) {
      const CommandResult run =
          run_tandem({"simulate", scenario_file(GetParam()), "--json", result(attempt), "--trace", trace(attempt)});
      ASSERT_EQ(run.exit_code, 0) << run.err;
    }
    EXPECT_EQ(without_run_costs(read_all(result(1))), without_run_costs(read_all(result(2))));
    EXPECT_NE(without_run_costs(read_all(result(1))), "");
    EXPECT_GT(read_all(trace(1)).size(), 1000U);
    EXPECT_TRUE(read_all(trace(1)) == read_all(trace(2))) << trace(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Repeatable, testing::Values("tiny-host", "llama3-70b-512"),
                         [](const auto& test) { return std::string(test.param == "tiny-host" ? "Tiny" : "Llama70b"); });

}  // namespace
}  // namespace tandem::cli::repeatable_test
