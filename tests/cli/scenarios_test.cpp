// Every scenario that comes with the sources runs, and its result is consistent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/text_file.h"
#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"

namespace tandem::cli::scenarios_test {
namespace {

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios"))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// Without --allow-oom: what is shipped fits.
CommandResult simulated(const std::string& name) { return run_tandem({"simulate", scenario_file(name), "--json", "-"}); }

class EveryScenario : public testing::TestWithParam<std::string> {};

TEST_P(EveryScenario, SimulatesToAConsistentResult) {
  const CommandResult run = simulated(GetParam());
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json result = checked_result(run.out);
  std::string warnings;
  for (const auto& warning : result["warnings"]) warnings += "tandem: warning: " + warning.get<std::string>() + "\n";
  EXPECT_EQ(run.err, warnings);
  expect_within_bounds(result);
  EXPECT_EQ(result["scenario"], GetParam());
  EXPECT_EQ(result["run"]["backend"], "simgrid");
  EXPECT_EQ(result["run"]["folded"], true);
  EXPECT_LE(result["run"]["rank_classes"], result["run"]["ranks"]);
}

INSTANTIATE_TEST_SUITE_P(Shipped, EveryScenario, testing::ValuesIn(scenario_names()), test_name);

TEST(Scenarios, AllAreListed) {
  const std::string page = read_text_file(TANDEM_SOURCE_DIR "/docs/shipped-scenarios.md", "a page");
  for (const std::string& name : scenario_names())
    EXPECT_THAT(page, testing::HasSubstr("| [`" + name + "`](../scenarios/" + name + ".yaml)"));
}

// The published run reached an MFU of 0.41 on 16,384 GPUs (arXiv 2407.21783, table 4). A twin of a cluster without stragglers
// lies above rather than below; above 0.55 it would have lost a cost.
TEST(Scenarios, Llama405bOn16kIsPlausible) {
  const CommandResult run = run_tandem({"simulate", scenario_file("llama3-405b-16k"), "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json result = checked_result(run.out);
  EXPECT_EQ(result["gpus"], 16384);
  EXPECT_GE(result["mfu"].get<double>(), 0.30);
  EXPECT_LE(result["mfu"].get<double>(), 0.55);
}

TEST(Scenarios, TheTerminalFormNamesStepTimeAndMemory) {
  const CommandResult run = run_tandem({"simulate", scenario_file("tiny-host")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::AllOf(testing::HasSubstr("step time"), testing::HasSubstr("Memory by pipeline stage")));
}

TEST(Scenarios, TheUnwiseIsSimulatedWithAWarning) {
  const CommandResult run = run_tandem({"simulate", scenario_file("llama3-8b-64"), "--set", "cluster.gpus_per_node=1", "--set",
                                        "cluster.nics_per_node=1", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              testing::AllOf(testing::StartsWith("tandem: warning: "), testing::HasSubstr("tp 2 reaches beyond the node")));
  ASSERT_EQ(checked_result(run.out)["warnings"].size(), 1U);
  EXPECT_EQ("tandem: warning: " + checked_result(run.out)["warnings"][0].get<std::string>() + "\n", run.err);
}

TEST(Scenarios, AnOverrideChangesTheResult) {
  const CommandResult run = run_tandem(
      {"simulate", scenario_file("llama3-8b-64"), "--set", "cluster.gpus=128", "--set", "parallelism.dp=64", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(checked_result(run.out)["gpus"], 128);
}

}  // namespace
}  // namespace tandem::cli::scenarios_test
