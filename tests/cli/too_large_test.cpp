// Llama 3 405B with four sequences to a micro-batch keeps four times the activations, about 274 GB on an 80 GB GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::too_large_test {
namespace {

constexpr int does_not_fit = 3;
const std::vector<std::string> too_large = {"simulate", scenario_file("llama3-405b-16k"), "--set", "training.micro_batch=4",
                                            "--set",    "training.global_batch=8192"};

CommandResult run_too_large(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = too_large;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tandem(arguments);
}

TEST(TooLarge, SaysSoAndWritesNothing) {
  const TemporaryFolder folder;
  const CommandResult run = run_too_large({"--json", folder / "r.json", "--trace", folder / "t.pftrace"});
  EXPECT_EQ(run.exit_code, does_not_fit);
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(folder.empty());
  EXPECT_THAT(run.err, testing::HasSubstr("Memory by pipeline stage"));
  const std::string last_line = run.err.substr(run.err.rfind('\n', run.err.size() - 2) + 1);
  EXPECT_THAT(last_line, testing::MatchesRegex("tandem: .*llama3-405b-16k.yaml: stage [0-9]+ needs .* --allow-oom\n"));
}

TEST(TooLarge, KeepsStandardOutputEmptyForTheJsonToo) {
  const CommandResult run =
      run_tandem({"simulate", scenario_file("llama3-8b-64"), "--set", "training.micro_batch=4", "--json", "-"});
  EXPECT_EQ(run.exit_code, does_not_fit);
  EXPECT_EQ(run.out, "");
}

TEST(TooLarge, GoesOnWhenAllowed) {
  const CommandResult run = run_too_large({"--json", "-", "--allow-oom"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json result = checked_result(run.out);
  expect_within_bounds(result);
  EXPECT_EQ(result["memory"]["fits"], false);
  EXPECT_GT(result["memory"]["peak_bytes"], result["memory"]["gpu_bytes"]);
}

}  // namespace
}  // namespace tandem::cli::too_large_test
