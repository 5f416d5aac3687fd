// Calibrates this machine for a moment, and simulates with what was found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/reading/profile.h"
#include "sim/kernel_family.h"
#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/studies/runs_table.h"

namespace tandem::cli::calibrate_test {
namespace {

using testing::HasSubstr;

const std::string tiny = scenario_file("tiny-host");
const std::vector<std::string> one_rank{"--set", "parallelism={tp: 1, sp: false, pp: 1, dp: 1}",
                                        "--set", "cluster.gpus=1",
                                        "--set", "model.layers=1",
                                        "--set", "training.global_batch=1"};

std::vector<std::string> on_one_rank(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), one_rank.begin(), one_rank.end());
  return arguments;
}

/// One profile for all tests of the suite.
class Calibrate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    std::ofstream(*folder_ / "shapes") << "# one more\ngemm fp32 33 65 129\n";
    run_ = run_tandem({"calibrate", "--backend", "host", "--out", profile(), "--scenario", tiny, "--shapes", *folder_ / "shapes",
                       "--budget", "10"});
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string profile() { return *folder_ / "host.profile"; }

  static std::unique_ptr<TemporaryFolder> folder_;
  static CommandResult run_;
};
std::unique_ptr<TemporaryFolder> Calibrate::folder_;
CommandResult Calibrate::run_;

TEST_F(Calibrate, WritesAProfileTwice) {
  ASSERT_EQ(run_.exit_code, 0) << run_.err;
  EXPECT_EQ(run_.err, "");  // no progress in a pipe
  EXPECT_THAT(run_.out, HasSubstr("kernels"));
  const Profile binary = read_profile(profile()), readable = read_profile(profile() + ".yaml");
  EXPECT_EQ(binary.kernels.size(), readable.kernels.size());
  EXPECT_EQ(binary.origin.backend, "host");
  EXPECT_THAT(binary.origin.libraries, HasSubstr("OpenBLAS"));
  const auto is_requested = [](const MeasuredKernel& measured) {
    return measured.kernel.op == OpKind::gemm && size_of(measured.kernel) == std::vector<double>{33, 65, 129};
  };
  EXPECT_TRUE(std::ranges::any_of(binary.kernels, is_requested) || run_.out.find("asked for") != std::string::npos);
}

TEST_F(Calibrate, TheSimulatorTakesItsTimes) {
  ASSERT_EQ(run_.exit_code, 0) << run_.err;
  const auto simulated = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"simulate", tiny, "--json", "-"});
    const CommandResult result = run_tandem(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_within_bounds(checked_result(result.out));
    return checked_result(result.out)["step_time_s"].get<double>();
  };
  const double assumed = simulated({}), measured = simulated({"--profile", profile()});
  EXPECT_NE(assumed, measured);
  EXPECT_EQ(simulated({"--set", "cluster.profile=" + profile()}), measured);
  EXPECT_NEAR(simulated({"--profile", profile() + ".yaml"}), measured, 1e-4 * measured);
  EXPECT_EQ(simulated({"--set", "cluster.profile=" + profile(), "--set", "cluster.profile=none"}), assumed);
}

TEST_F(Calibrate, CrosscheckComparesWithIt) {
  ASSERT_EQ(run_.exit_code, 0) << run_.err;
  for (const bool parallel : {true, false}) {
    std::vector<std::string> arguments{"crosscheck", tiny, "--backend", "host", "--profile", profile(), "--json", "-"};
    const CommandResult result = run_tandem(parallel ? arguments : on_one_rank(arguments));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json json = checked_result(result.out);
    const nlohmann::json& check = json["crosscheck"];
    std::size_t count = 0;
    double share = 0;
    for (const nlohmann::json& kind : check["kinds"]) {
      count += kind["count"].get<std::size_t>();
      share += kind["share"].get<double>();
    }
    EXPECT_EQ(count, json["run"]["tasks"]);
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_EQ(check["worst"].size(), 10U);
    EXPECT_EQ(check["overlap"].empty(), !parallel);
    EXPECT_NEAR(check["step"]["measured_s"].get<double>(), json["step_time_s"].get<double>(), 1e-12);
    EXPECT_GT(check["memory"]["simulated_bytes"], 0);
    EXPECT_TRUE(check["memory"]["measured_bytes"].is_null());
    EXPECT_THAT(result.err, HasSubstr("Tasks that differ most"));
  }
}

TEST(CalibrateFiles, AKilledCalibrationLeavesNone) {
  const TemporaryFolder folder;
  const CommandResult run =
      run_tandem({"calibrate", "--backend", "host", "--out", folder / "p", "--budget", "100"}, {.kill_after = 1.0});
  EXPECT_NE(run.signal, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "p"));
  EXPECT_FALSE(std::filesystem::exists(folder / "p.yaml"));
}

TEST(CalibrateRefuses, WrongInput) {
  constexpr int failed = 1, wrong_input = 2;
  const TemporaryFolder folder;
  const std::vector<std::string> calibrate{"calibrate", "--backend", "host", "--out", folder / "p", "--budget", "1"};
  const auto with = [&](std::vector<std::string> arguments, int exit_code, const std::vector<std::string>& words) {
    arguments.insert(arguments.begin(), calibrate.begin(), calibrate.end());
    expect_refusal(run_tandem(arguments), exit_code, words);
    EXPECT_FALSE(std::filesystem::exists(folder / "p"));
  };
  const auto shapes = [&](const std::string& text, const std::vector<std::string>& words) {
    std::ofstream(folder / "shapes") << text;
    with({"--shapes", folder / "shapes"}, wrong_input, words);
  };
  shapes("", {"shapes: is empty, expected a list of kernels"});
  shapes("\ngemm fp32 1 2\n", {"shapes:2:1: sizes are whole numbers", "expected `gemm TYPE M N K`"});
  shapes("gemm fp33 1 2 3\n", {"shapes:1:1: `fp33` is no type, expected fp32"});
  shapes("attention fp32 8 6 4 8\n", {"the key heads do not divide the heads"});
  shapes("attention fp32 8 6 3 8 causally\n", {"`causally` is not `causal`"});
  shapes("convolution fp32 3\n", {"`convolution` is unknown"});
  shapes("gemm fp32[2,3] fp32[4,4] fp32[2,4] | gemm 0 1 0\n", {"does not take these operands"});
  with({"--shapes", folder / "none"}, wrong_input, {"none: cannot be read"});
  with({"--scenario", folder / "none.yaml"}, wrong_input, {"none.yaml: cannot be read"});
  with({"--budget", "1"}, wrong_input, {"--budget", "see tandem calibrate --help"});
  expect_refusal(run_tandem({"calibrate", "--backend", "host"}), wrong_input, {"--out is required"});
  expect_refusal(run_tandem({"calibrate", "--backend", "host", "--out", "/no/such/folder/p"}), failed, {"/no/such/folder/p"});
}

TEST(ProfileRefuses, WrongInput) {
  constexpr int wrong_input = 2;
  const TemporaryFolder folder;
  const std::string scenario = folder / "s.yaml";
  const auto refused = [&](const std::string& value, const std::vector<std::string>& words) {
    std::ofstream(scenario) << "model: tiny-llama\ncluster: {preset: host, gpus: 1, profile: " + value +
                                   "}\ntraining: {sequence: 64, global_batch: 1, precision: fp32}\n";
    expect_refusal(run_tandem({"simulate", scenario}), wrong_input, words);
  };
  refused("no.profile", {scenario + ":2:43: the profile `no.profile` cannot be read: No such file", "tandem calibrate --out"});
  refused("[1]", {scenario + ":2:43: profile is a list, expected the path of a file"});
  refused(".", {scenario + ":2:43: the profile `.` cannot be read: Is a directory"});
  refused("s.yaml", {scenario + ":1:1: profile has no field `model`"});
  std::ofstream(folder / "text") << "hello\n";
  refused("text", {folder / "text", "is no tandem-profile file", "tandem calibrate --out"});
  expect_refusal(run_tandem({"simulate", tiny, "--profile", folder / "none"}), wrong_input,
                 {"--set cluster.profile=", "cannot be read: No such file"});
}

using studies::RunsTable;
using studies::tiny_run;

std::vector<nlohmann::json> rows_of(const RunsTable& table) {
  const CommandResult run = run_tandem({"validate", table.file(), "--json", table / "rows.json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(read_all(table / "rows.json"))["rows"];
}

TEST(CalibrateRuns, WhatIsLearntMakesStepsThatLong) {
  constexpr double longer = 1.1;
  studies::RunCells a = tiny_run({{"framework", "megatron-core"}}), b = a;
  b["id"] = "b";
  b["global_batch"] = "128";
  const std::vector<nlohmann::json> by_presets = rows_of(RunsTable({a, b}));
  const auto measured = [&](std::size_t row) { return longer * by_presets[row]["predicted_step_time_s"].get<double>(); };
  a["step_time_s"] = std::to_string(measured(0));
  b["step_time_s"] = std::to_string(measured(1));
  const RunsTable table({a, b});
  const CommandResult run = run_tandem({"calibrate", "--runs", table.file(), "--out", table / "my.profile"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 runs of h100-sxm-80gb under megatron-core"));
  const nlohmann::json row = rows_of(table).front();
  std::ofstream(table / "run.yaml") << row["scenario"].get<std::string>();
  for (const std::string& profile : {table / "my.profile", table / "my.profile.yaml"}) {
    const CommandResult simulated =
        run_tandem({"simulate", table / "run.yaml", "--json", "-", "--set", "cluster.profile=" + profile});
    ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
    const nlohmann::json step = checked_result(simulated.out);
    EXPECT_EQ(step["interval_s"]["known_from"]["class"], "site");
    EXPECT_GT(step["step_time_s"], row["predicted_step_time_s"]);
    EXPECT_LT(step["step_time_s"], measured(0) * 1.02);
    EXPECT_EQ(step["site"]["runs"], 2);
  }
}

TEST(CalibrateRuns, NeedsRunsOrABackendAndNotBoth) {
  const RunsTable table({tiny_run()});
  const auto refused = [&](std::vector<std::string> arguments, const std::string& words) {
    arguments.insert(arguments.begin(), {"calibrate", "--out", table / "p"});
    const CommandResult run = run_tandem(arguments);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(table / "p"));
  };
  refused({}, "--backend or --runs is required");
  refused({"--runs", table.file(), "--backend", "host"}, "excludes");
  refused({"--runs", table.file(), "--budget", "3"}, "excludes");
  refused({"--runs", table / "none.csv"}, "none.csv");
}

}  // namespace
}  // namespace tandem::cli::calibrate_test
