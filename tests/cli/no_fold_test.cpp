#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::no_fold_test {
namespace {

constexpr const char* sixteen_ranks = R"(name: sixteen
model: {layers: 4, hidden: 2048, heads: 16, kv_heads: 8, ffn: 8192, gated: true, vocab: 32000, norm: rms}
cluster: {preset: dgx-h100, gpus: 16}
parallelism: {tp: 4, sp: true, pp: 2, dp: 2, zero: 1}
training: {sequence: 2048, micro_batch: 1, global_batch: 16, precision: bf16, schedule: 1f1b, recompute: none}
)";

nlohmann::json simulated(const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  std::ofstream(folder / "s.yaml") << sixteen_ranks;
  std::vector<std::string> arguments = {"simulate", folder / "s.yaml", "--json", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const CommandResult run = run_tandem(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return checked_result(run.out);
}

std::map<std::string, double> by_stage_and_kind(const nlohmann::json& result) {
  std::map<std::string, double> values;
  for (const nlohmann::json& stage : result["stages_s"]) {
    values["ranks of stage " + stage["stage"].dump()] = stage["ranks"].get<double>();
    values["bubble of stage " + stage["stage"].dump()] = stage["bubble"].get<double>();
  }
  for (const nlohmann::json& kind : result["kinds"]) {
    const std::string name = kind["phase"].get<std::string>() + " " + kind["name"].get<std::string>();
    values["time of " + name] = kind["time_s"].get<double>();
    values["count of " + name] = kind["count"].get<double>();
  }
  return values;
}

class NoFold : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(NoFold, TakesTheTimeOfTheFoldedStep) {
  std::vector<std::string> arguments = GetParam();
  const nlohmann::json folded = simulated(arguments);
  arguments.emplace_back("--no-fold");
  const nlohmann::json unfolded = simulated(arguments);

  EXPECT_EQ(unfolded["run"]["rank_classes"], 16);
  EXPECT_LT(folded["run"]["rank_classes"], 16);
  EXPECT_EQ(unfolded["run"]["folded"], false);
  const double step = folded["step_time_s"].get<double>();
  EXPECT_NEAR(unfolded["step_time_s"].get<double>(), step, 1e-9 * step);
  for (const char* part : {"/time_s/compute", "/time_s/exposed/tp", "/time_s/exposed/pp", "/time_s/exposed/dp", "/time_s/bubble",
                           "/memory/peak_bytes"}) {
    const nlohmann::json::json_pointer key(part);
    EXPECT_NEAR(unfolded[key].get<double>(), folded[key].get<double>(), 1e-9 * std::max(step, folded[key].get<double>())) << part;
  }
  const std::map<std::string, double> expected = by_stage_and_kind(folded);
  for (const auto& [what, value] : by_stage_and_kind(unfolded)) {
    ASSERT_TRUE(expected.contains(what)) << what;
    EXPECT_NEAR(value, expected.at(what), 1e-9 * std::max(step, value)) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Sixteen, NoFold,
                         testing::Values(std::vector<std::string>{},
                                         std::vector<std::string>{"--set", "faults.slow_gpu={rank: 5, factor: 0.5}"}),
                         [](const auto& test) { return std::string(test.param.empty() ? "Healthy" : "SlowGpu"); });

TEST(NoFold, IsRefusedOnLargeClusters) {
  expect_refusal(run_tandem({"simulate", scenario_file("llama3-405b-16k"), "--no-fold"}), 2,
                 {"--no-fold", "16384 ranks", "at most 4096"});
}

TEST(CollectivesInSteps, TakeEveryRankAndAboutTheTime) {
  const nlohmann::json fluid = simulated({});
  const nlohmann::json steps = simulated({"--collectives", "steps"});
  EXPECT_EQ(fluid["run"]["collectives"], "fluid");
  EXPECT_EQ(simulated({"--collectives", "fluid"})["step_time_s"], fluid["step_time_s"]);
  EXPECT_EQ(steps["run"]["collectives"], "steps");
  EXPECT_EQ(steps["run"]["folded"], false);
  EXPECT_EQ(steps["run"]["rank_classes"], 16);
  const double step = fluid["step_time_s"].get<double>();
  EXPECT_NE(steps["step_time_s"].get<double>(), step);
  EXPECT_NEAR(steps["step_time_s"].get<double>(), step, 0.03 * step);
}

TEST(CollectivesInSteps, CanBeCrosschecked) {
  const CommandResult run =
      run_tandem({"crosscheck", scenario_file("tiny-host"), "--backend", "host", "--collectives", "steps", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto result = nlohmann::json::parse(run.out);
  EXPECT_EQ(result["run"]["collectives"], "steps");
  EXPECT_FALSE(result.contains("interval_s"));  // the result is the executed step's, of which nothing is uncertain
}

TEST(CollectivesInSteps, AreInTheHelp) {
  const CommandResult run = run_tandem({"simulate", "--help"});
  EXPECT_NE(run.out.find("--collectives fluid|steps"), std::string::npos) << run.out;
}

TEST(CollectivesInSteps, AreRefusedOnLargeClusters) {
  expect_refusal(run_tandem({"simulate", scenario_file("llama3-70b-512"), "--collectives", "steps"}), 2,
                 {"--collectives steps", "512 ranks", "at most 256", "--collectives fluid"});
}

}  // namespace
}  // namespace tandem::cli::no_fold_test
