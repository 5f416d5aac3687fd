// Every rule of `tandem lint`: a scenario that triggers it, and a neighbour that does not.
#include "studies/lint/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/plan/issue_order.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "studies/lint/rendezvous.h"
#include "tests/cli/run_command.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::cli::lint_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// A file in the test's own folder.
std::string written(const std::string& text) {
  const std::string path = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
  std::ofstream(path) << text;
  return path;
}

std::vector<Finding> findings(const std::vector<std::string>& overrides, const std::string& text = base_text()) {
  return lint(written(text), overrides, {.jobs = 1, .with_costs = false}).findings;
}

std::vector<std::string> rules(const std::vector<std::string>& overrides, const std::string& text = base_text()) {
  std::vector<std::string> names;
  for (const Finding& finding : findings(overrides, text)) names.push_back(finding.rule);
  return names;
}

Finding only(const std::string& rule, const std::vector<std::string>& overrides) {
  for (const Finding& finding : findings(overrides))
    if (finding.rule == rule) return finding;
  ADD_FAILURE() << rule << " was not found";
  return {};
}

// 4096 words and 8 layers: fewer than half a million tokens, so the base is for the other rules.
const std::string usual_batch = "training.global_batch=512";

TEST(Lint, FindsNothingInAnOrdinaryScenario) { EXPECT_THAT(rules({usual_batch}), IsEmpty()); }

TEST(Lint, CollectsAllRefusals) {
  const std::vector<Finding> found =
      findings({"model.kv_heads=3", "training.global_batch=13", "training.schedule=interleaved-1f1b", "parallelism.hsdp=3"});
  std::vector<std::string> sentences;
  for (const Finding& finding : found) {
    EXPECT_EQ(finding.rule, "refused");
    EXPECT_EQ(finding.severity, Severity::error);
    EXPECT_THAT(finding.place.file, StartsWith("--set"));
    sentences.push_back(finding.sentence);
  }
  EXPECT_THAT(sentences, Contains(HasSubstr("kv_heads 3 does not divide heads 8")));
  EXPECT_THAT(sentences, Contains(HasSubstr("interleaved-1f1b with vpp 1")));
  EXPECT_THAT(sentences, Contains(HasSubstr("hsdp 3")));
}

TEST(Lint, CollectsWrongFieldsOfAllSections) {
  const std::vector<Finding> found = findings({"model.layers=many", "training.sequence=0", "parallelism.zero=7"});
  ASSERT_EQ(found.size(), 3);
  EXPECT_THAT(found[0].sentence, HasSubstr("model.layers"));
  EXPECT_THAT(found[1].sentence, HasSubstr("parallelism.zero"));
  EXPECT_THAT(found[2].sentence, HasSubstr("training.sequence"));
}

TEST(Lint, RefusalsHaveTheirPlace) {
  std::vector<std::string> lines = base_lines();
  lines[4] = "training: {sequence: 1023, micro_batch: 1, global_batch: 16}";
  const std::vector<Finding> found = findings({}, joined_lines(lines));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].place.line, 5);
  EXPECT_EQ(found[0].place.column, 22);
}

TEST(Lint, WarningsOfEveryCommandWithFixes) {
  const Finding found = only("tp-beyond-node", {usual_batch, "parallelism.order=[dp, tp, cp, ep, pp]"});
  EXPECT_THAT(found.fix, testing::ElementsAre("parallelism.order=", "parallelism.placement="));
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=3", "parallelism.pp=1", "parallelism.dp=", "parallelism.tp=8"}),
              Contains("small-shard-group"));
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=3", "parallelism.pp=1", "parallelism.dp="}),
              Not(Contains("small-shard-group")));
}

// tp 4 * cp 2 is a node of 8 GPUs, tp 4 * cp 4 two of them, and 8 / tp 4 = 2 is the cp that stays inside.
TEST(Lint, ContextParallelismBeyondTheNode) {
  std::vector<std::string> lines = base_lines();
  lines[3] = "parallelism: {tp: 4, sp: true, pp: 2, cp: 4, dp: 1}";
  const std::vector<Finding> found = findings({usual_batch}, joined_lines(lines));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].rule, "cp-beyond-node");
  EXPECT_EQ(found[0].severity, Severity::warning);
  EXPECT_EQ(found[0].place.line, 4);
  EXPECT_EQ(found[0].place.column, 43);
  EXPECT_THAT(found[0].sentence, HasSubstr("cp 4 * tp 4 reaches beyond the node of 8 GPUs"));
  EXPECT_THAT(found[0].fix, testing::ElementsAre("parallelism.cp=2", "parallelism.dp="));

  const std::vector<std::string> within{usual_batch, "parallelism.cp=2", "parallelism.dp=2"};
  EXPECT_THAT(rules(within), IsEmpty());
  std::vector<std::string> spread = within;
  spread.emplace_back("parallelism.order=[tp, dp, cp, ep, pp]");  // cp neighbours are tp 4 * dp 2 ranks apart
  EXPECT_THAT(only("cp-beyond-node", spread).fix, testing::ElementsAre("parallelism.order=", "parallelism.placement="));
}

// DeepSeek-V3's way (arXiv 2412.19437, section 2.1.2): a token's experts in at most 4 nodes.
TEST(Lint, ManyExpertRanks) {
  const auto with = [](const std::string& ep, const std::string& more) {
    std::vector<std::string> lines = base_lines();
    lines[1] = "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096, moe: {experts: 64, top_k: 8" +
               more + "}}";
    lines[2] = "cluster: {preset: dgx-h100, gpus: 128}";
    lines[3] = "parallelism: {ep: " + ep + ", dp: 128}";
    return joined_lines(lines);
  };
  const auto is_it = [](const Finding& finding) { return finding.rule == "many-expert-ranks"; };
  const std::vector<Finding> all = findings({usual_batch}, with("64", ""));
  const auto found = std::ranges::find_if(all, is_it);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->severity, Severity::advice);
  EXPECT_EQ(found->place.line, 4);
  EXPECT_EQ(found->place.column, 19);
  EXPECT_THAT(found->sentence, HasSubstr("ep 64 without a node limit"));
  EXPECT_THAT(found->fix, testing::ElementsAre("model.moe.node_limit=4"));
  EXPECT_TRUE(std::ranges::none_of(findings({usual_batch}, with("32", "")), is_it));
  EXPECT_TRUE(std::ranges::none_of(findings({usual_batch}, with("64", ", node_limit: 4")), is_it));
}

// 32 GPUs dealt out to 4 nodes in turn: rank r is GPU r / 4 of node r % 4. Data-parallel neighbours are 4 apart, on one node.
// Pipeline neighbours are 16 apart, on one node too. A list that swaps two GPUs of one node puts one group on two rails.
TEST(Lint, CrossedRails) {
  std::string swapped = "parallelism.placement=[1, 0";
  for (int gpu = 2; gpu < 32; ++gpu) swapped += ", " + std::to_string(gpu);
  const Finding found = only("crossed-rails", {usual_batch, swapped + "]"});
  EXPECT_THAT(found.sentence, HasSubstr("the dp group of rank 0 has GPUs 1, 4 on node 0 but 0, 4 on node 1"));
  EXPECT_THAT(found.fix, testing::ElementsAre("parallelism.placement=packed"));
  EXPECT_THAT(rules({usual_batch, swapped + "]", "cluster.fabric.rail_optimized=false"}), Not(Contains("crossed-rails")));
}

/// Llama 3's own order keeps stages near each other; with pp outermost each message between stages crosses Meta's core.
TEST(LintRules, NameTheOrderThatRelievesAnOversubscribedFabric) {
  const std::string scenario = TANDEM_SOURCE_DIR "/scenarios/llama3-405b-64k.yaml";
  const auto found = [&](const std::vector<std::string>& overrides) -> std::optional<Finding> {
    const LintResult result = lint(scenario, overrides, {.jobs = 2});
    const auto finding = std::ranges::find(result.findings, "stages-across-fabric", &Finding::rule);
    if (finding == result.findings.end()) return std::nullopt;
    EXPECT_NEAR(*finding->cost, result.step->step_time - finding->fixed->step_time, 1e-9);
    EXPECT_GT(*finding->cost, 0.05 * result.step->step_time);
    return *finding;
  };
  const std::string megatron = "parallelism.order=[tp, cp, ep, dp, pp]", core = "cluster.fabric.oversubscription=";
  const auto finding = found({megatron, core + "[1, 1, 7]"});
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->fix, testing::ElementsAre("parallelism.order=[tp, cp, ep, pp, dp]"));
  EXPECT_THAT(finding->sentence, AllOf(HasSubstr("4096 GPUs apart"), HasSubstr("brings them 8 apart")));
  EXPECT_FALSE(found({megatron, core + "[1, 1, 1]"}));
  EXPECT_FALSE(found({core + "[1, 1, 7]"}));
}

TEST(Lint, FewMicroBatches) {
  // 32 / (tp 4 * pp 4) = 2 replicas: 2 * 2 sequences of micro-batch 2 are 2 micro-batches for 4 stages
  const std::vector<std::string> few{"parallelism.pp=4", "parallelism.dp=2", "training.micro_batch=2", "training.global_batch=8"};
  const Finding found = only("few-micro-batches", few);
  EXPECT_THAT(found.sentence, HasSubstr("2 micro-batches for 4 pipeline stages: at least 60 %"));  // 3 / (3 + 2)
  EXPECT_THAT(found.fix, testing::ElementsAre("training.micro_batch=1"));
  EXPECT_THAT(rules({"parallelism.pp=4", "parallelism.dp=2", "training.global_batch=8"}), Not(Contains("few-micro-batches")));
}

TEST(Lint, ShardedWeightsInAPipeline) {
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=3"}), Contains("sharded-weights-in-pipeline"));
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=2"}), Not(Contains("sharded-weights-in-pipeline")));
}

TEST(Lint, VocabularyPadding) {
  const Finding found = only("vocabulary-padding", {usual_batch, "model.vocab=50260"});
  EXPECT_THAT(found.fix, testing::ElementsAre("model.vocab=50688"));  // 99 * 512
  EXPECT_EQ(found.severity, Severity::warning);                       // 12,565 columns
  EXPECT_THAT(rules({usual_batch, "model.vocab=50688"}), IsEmpty());
}

TEST(Lint, UnevenProducts) {
  const Finding found = only("uneven-products", {usual_batch, "model.ffn=1100"});  // 275 of each rank
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(found.fix, testing::ElementsAre("model.ffn=1536"));                                  // 384 * 4
  EXPECT_EQ(only("uneven-products", {usual_batch, "model.ffn=1184"}).severity, Severity::advice);  // 296 = 37 * 8
  EXPECT_THAT(rules({usual_batch, "model.ffn=1536"}), IsEmpty());
}

TEST(Lint, UnusualBatches) {
  EXPECT_THAT(rules({"training.global_batch=484"}), Contains("unusual-batch"));  // 0.496 million
  EXPECT_THAT(rules({"training.global_batch=492"}), IsEmpty());                  // 0.504 million
  EXPECT_THAT(rules({"training.global_batch=64000"}), Contains("unusual-batch"));
}

TEST(Lint, UnevenExperts) {
  const std::vector<std::string> uniform{usual_batch, "model.moe={experts: 8, top_k: 2}", "parallelism.ep=4"};
  EXPECT_THAT(rules(uniform), Not(Contains("uneven-experts")));
  std::vector<std::string> uneven = uniform;
  uneven.emplace_back("model.moe.load=[3, 3, 1, 1, 1, 1, 1, 1]");  // the first rank has 6 of 12, the mean is 3
  const Finding found = only("uneven-experts", uneven);
  EXPECT_THAT(found.sentence, HasSubstr("4 expert ranks gets 2.00 times the mean"));
  EXPECT_THAT(found.fix, testing::ElementsAre("model.moe.load=uniform"));
}

// Two ranks that both send first and then receive; posted together they pass.
TEST(Lint, CirclesOfTransfers) {
  const Transfer to_1{.peer = 1, .id = 0, .name = "send a"}, from_0{.peer = 0, .id = 0, .name = "receive a"};
  const Transfer to_0{.peer = 0, .id = 1, .name = "send b"}, from_1{.peer = 1, .id = 1, .name = "receive b"};
  EXPECT_THAT(circle_of({{{to_1}, {from_1}}, {{to_0}, {from_0}}}),
              testing::ElementsAre("stage 0 waits with send a for stage 1", "stage 1 waits with send b for stage 0"));
  EXPECT_THAT(circle_of({{{to_1}, {from_1}}, {{from_0}, {to_0}}}), IsEmpty());
  EXPECT_THAT(circle_of({{{to_1, from_1}}, {{to_0}, {from_0}}}), IsEmpty());
  EXPECT_THAT(circle_of({}), IsEmpty());
}

Scenario pipeline(const std::string& schedule, const std::vector<std::string>& more) {
  std::vector<std::string> overrides{usual_batch, "training.schedule=" + schedule};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return pipeline_in_small(parse_scenario(base_text(), "s.yaml", overrides));
}

// Megatron-LM's reason for send_forward_recv_backward: 1F1B's neighbours each send first. GPipe's never do.
TEST(Lint, SchedulesAsRendezvous) {
  const auto circle = [](const Scenario& small, bool batched) {
    return circle_of(pipeline_transfers(lower(small, make_world(small, false)), batched));
  };
  EXPECT_THAT(circle(pipeline("1f1b", {}), true), IsEmpty());
  EXPECT_THAT(circle(pipeline("1f1b", {}), false), Not(IsEmpty()));
  EXPECT_THAT(circle(pipeline("gpipe", {}), true), IsEmpty());
  EXPECT_THAT(circle(pipeline("gpipe", {}), false), IsEmpty());
}

TEST(Lint, CircularTransfers) {
  const std::vector<std::string> four_stages{usual_batch, "parallelism.pp=4", "parallelism.dp=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), four_stages.begin(), four_stages.end());
    return rules(more);
  };
  EXPECT_THAT(with({"training.schedule=zb-v", "parallelism.vpp=2"}), Contains("circular-transfers"));
  EXPECT_THAT(with({"training.schedule=zb-h1"}), Not(Contains("circular-transfers")));
}

// In the order in which the units are issued, the same on every rank, nothing can wait in a circle, batched or not.
TEST(Lint, TheOrderOfIssueNeverWaitsInACircle) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    const Scenario small = pipeline(schedule, {});
    const Dag dag = lower(small, make_world(small, false));
    RankTransfers ranks(dag.ranks.size());
    for (const TaskId unit : issue_order(dag)) {
      if (dag.tasks[unit].op != OpKind::send && dag.tasks[unit].op != OpKind::receive) continue;
      const auto members = dag.unit_of(unit);
      for (std::size_t side = 0; side < 2; ++side)
        ranks[dag.tasks[members[side]].rank].push_back(
            {{.peer = dag.tasks[members[1 - side]].rank, .id = dag.tasks[unit].group, .name = ""}});
    }
    EXPECT_THAT(circle_of(ranks), IsEmpty()) << schedule;
  }
}

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
