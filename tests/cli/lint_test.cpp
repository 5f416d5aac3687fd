// `tandem lint` as a command: what its findings cost, what they advise, and how it exits. tests/studies/lint_rules_test.cpp has a
// test of each rule.
#include "studies/lint/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::cli::lint_test {
namespace {

using testing::HasSubstr;

/// A file in the test's own folder.
std::string written(const std::string& text) {
  std::string path = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  std::ofstream(path) << text;
  return path;
}

// 4096 words and 8 layers: fewer than half a million tokens, so the base is for the other rules.
const std::string usual_batch = "training.global_batch=512";
nlohmann::json linted(const std::string& path, const std::vector<std::string>& overrides, int exit_code) {
  std::vector<std::string> arguments{"lint", path, "--json", "-"};
  for (const std::string& change : overrides) arguments.insert(arguments.end(), {"--set", change});
  const CommandResult result = run_tandem(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err << result.out;
  return nlohmann::json::parse(result.out, nullptr, false);
}

nlohmann::json found_in(const nlohmann::json& report, const std::string& rule) {
  for (const auto& finding : report["findings"])
    if (finding["rule"] == rule) return finding;
  return nullptr;
}

TEST(Lint, WritesMarkdown) {
  const std::string path = written(base_text());
  const CommandResult result = run_tandem(
      {"lint", path, "--no-costs", "--set", "parallelism.order=[dp, tp, cp, ep, pp]", "--set", usual_batch, "--markdown", "-"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, testing::StartsWith("**"));
  EXPECT_THAT(result.out, HasSubstr("**warning (tp-beyond-node)**\n\n"));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("\n  ")));
}

// The cost is what simulate says of the scenario less what it says of the scenario with the fix.
TEST(Lint, CostsAreThoseOfSimulations) {
  const std::string path = written(base_text());
  const nlohmann::json report = linted(path, {usual_batch, "parallelism.order=[dp, tp, cp, ep, pp]"}, 1);
  const nlohmann::json found = found_in(report, "tp-beyond-node");
  ASSERT_TRUE(found.is_object()) << report;
  const auto step_time = [&](const std::vector<std::string>& options) -> double {
    std::vector<std::string> arguments{"simulate", path, "--json", "-", "--set", usual_batch};
    for (const std::string& change : options) arguments.insert(arguments.end(), {"--set", change});
    return nlohmann::json::parse(run_tandem(arguments).out)["step_time_s"];
  };
  const double spread = step_time({"parallelism.order=[dp, tp, cp, ep, pp]"}), packed = step_time({});
  EXPECT_DOUBLE_EQ(found["cost_s"].get<double>(), spread - packed);
  EXPECT_DOUBLE_EQ(found["fixed"]["step_time_s"].get<double>(), packed);
  EXPECT_DOUBLE_EQ(report["step"]["step_time_s"].get<double>(), spread);
  double last = 1e9;
  for (const auto& finding : report["findings"]) {
    const double cost = finding["cost_s"].is_null() ? 0 : finding["cost_s"].get<double>();
    EXPECT_LE(cost, last);
    last = cost;
  }
}

// Wide enough for its gradients to take a while between the nodes.
const std::string wide = "model={layers: 8, hidden: 2048, heads: 16, kv_heads: 16, ffn: 8192, vocab: 32768}";

TEST(Lint, AdvisesOnlyWhatGains) {
  const std::string path = written(base_text());
  const nlohmann::json wasteful = linted(path, {usual_batch, wide, "training.recompute=full", "training.overlap.dp=false"}, 0);
  const nlohmann::json thrifty = linted(path, {usual_batch, wide}, 0);
  // sp spares work on norms and residuals, which counts where these are large, and costs the latency of more collectives.
  const nlohmann::json replicated =
      linted(path,
             {"model={layers: 8, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, vocab: 32768}", "training.sequence=8192",
              "training.global_batch=64", "cluster.nvls=false", "parallelism.sp=false"},
             0);
  for (const char* rule : {"needless-recompute", "no-gradient-overlap", "no-sequence-parallelism"}) {
    const nlohmann::json found = found_in(rule == std::string("no-sequence-parallelism") ? replicated : wasteful, rule);
    ASSERT_TRUE(found.is_object()) << rule << wasteful;
    EXPECT_GT(found["cost_s"], 0);
    EXPECT_TRUE(found_in(thrifty, rule).is_null()) << thrifty;
  }
  EXPECT_TRUE(found_in(thrifty, "thin-shards").is_null());  // 8192 / 4
  EXPECT_TRUE(found_in(linted(path, {usual_batch}, 0), "thin-shards").is_object());
}

// Large products beside which collectives can hide; with the overlap there is nothing to advise, and without sp nothing to
// overlap.
TEST(Lint, TensorParallelCollectivesBesideProducts) {
  const std::string large = "model={layers: 2, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, vocab: 32768}";
  const std::vector<std::string> settings{large, "training.sequence=8192", "training.global_batch=64"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> overrides = settings;
    if (!more.empty()) overrides.push_back(more);
    return found_in(linted(written(base_text()), overrides, 0), "no-tensor-overlap");
  };
  const nlohmann::json found = with("");
  ASSERT_TRUE(found.is_object());
  EXPECT_EQ(found["severity"], "advice");
  EXPECT_THAT(found["place"].get<std::string>(), HasSubstr(".yaml:4:19"));  // tp, since nothing says training.overlap
  EXPECT_EQ(found["fix"], nlohmann::json::array({"training.overlap.tp=true"}));
  EXPECT_GT(found["cost_s"], 0);
  EXPECT_TRUE(with("training.overlap.tp=true").is_null());
  EXPECT_TRUE(with("parallelism.sp=false").is_null());
}

// The base takes 56.7 MB: more than 0.05 GiB, 96 % of 0.055 GiB and 84 % of 0.063 GiB.
TEST(Lint, MemoryThatDoesNotSuffice) {
  const std::string path = written(base_text());
  const auto with = [&](const std::string& memory, int exit_code) {
    return linted(path, {usual_batch, "cluster.gpu.memory_GiB=" + memory}, exit_code);
  };
  const nlohmann::json found = found_in(with("0.05", 3), "does-not-fit");
  ASSERT_TRUE(found.is_object());
  EXPECT_EQ(found["severity"], "error");
  EXPECT_TRUE(found_in(with("0.055", 1), "little-memory-left").is_object());
  const nlohmann::json enough = with("0.063", 0);
  EXPECT_TRUE(found_in(enough, "does-not-fit").is_null());
  EXPECT_TRUE(found_in(enough, "little-memory-left").is_null());
}

// Of the textbook's mesh: 217 GB with whole experts on a rank and without recompute.
TEST(Lint, LeadsOutOfMemoryThatDoesNotSuffice) {
  const std::string path = TANDEM_SOURCE_DIR "/scenarios/moe-1t-16k.yaml";
  const std::vector<std::string> large{"parallelism.etp=1", "training.recompute=none"};
  const nlohmann::json found = found_in(linted(path, large, 3), "does-not-fit");
  ASSERT_TRUE(found.is_object());
  ASSERT_FALSE(found["fix"].empty());
  EXPECT_EQ(found["fix"], found["relief"]["plan"]["change"]);
  std::vector<std::string> arguments{"simulate", path, "--json", "-"};
  for (const std::string& change : large) arguments.insert(arguments.end(), {"--set", change});
  for (const auto& change : found["fix"]) arguments.insert(arguments.end(), {"--set", change.get<std::string>()});
  const CommandResult run = run_tandem(arguments);
  ASSERT_EQ(run.exit_code, 0) << run.err;  // it fits
  const nlohmann::json fixed = nlohmann::json::parse(run.out);
  EXPECT_EQ(fixed["memory"]["peak_bytes"], found["fixed"]["peak_bytes"]);
  EXPECT_LE(fixed["memory"]["peak_bytes"].get<double>(), 0.95 * fixed["memory"]["gpu_bytes"].get<double>());
  EXPECT_DOUBLE_EQ(fixed["step_time_s"], found["fixed"]["step_time_s"].get<double>());
}

TEST(Lint, SaysWhereNothingFits) {
  const std::string path = written(base_text());
  const std::vector<std::string> tiny_memory{usual_batch, "cluster.gpu.memory_GiB=0.002"};
  const nlohmann::json found = found_in(linted(path, tiny_memory, 3), "does-not-fit");
  ASSERT_TRUE(found.is_object());
  EXPECT_TRUE(found["fix"].empty());
  EXPECT_TRUE(found["fixed"].is_null());
  EXPECT_TRUE(found["relief"]["plan"].is_null());
  EXPECT_GT(found["relief"]["least"]["peak_bytes"], 2 << 20);
  EXPECT_THAT(run_tandem({"simulate", path, "--set", tiny_memory[0], "--set", tiny_memory[1]}).err,
              HasSubstr("Nothing makes it fit: "));
}

TEST(Lint, ExitCodes) {
  const std::string path = written(base_text());
  const CommandResult refused = run_tandem({"lint", path, "--set", "parallelism.tp=3"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, HasSubstr("tp 3 does not divide 8 heads"));
  EXPECT_EQ(run_tandem({"lint", path, "--no-costs", "--set", usual_batch}).exit_code, 0);
  EXPECT_EQ(run_tandem({"lint", path + ".none"}).exit_code, 2);
}

TEST(Lint, ShippedScenariosHaveNoErrors) {
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    for (const Finding& finding : lint(entry.path().string(), {}, {.jobs = 1, .with_costs = false}).findings)
      EXPECT_NE(finding.severity, Severity::error) << entry.path() << ": " << finding.sentence;
  }
}

}  // namespace
}  // namespace tandem::cli::lint_test
