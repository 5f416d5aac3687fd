// Every rule of `tandem lint`: a scenario that triggers it, and a neighbour that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "studies/lint/lint.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::studies::lint_rules_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// A file in the test's own folder.
std::string written(const std::string& text) {
  std::string path = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".yaml";
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

TEST(LintRules, FindsNothingInAnOrdinaryScenario) { EXPECT_THAT(rules({usual_batch}), IsEmpty()); }

TEST(LintRules, CollectsAllRefusals) {
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

TEST(LintRules, CollectsWrongFieldsOfAllSections) {
  const std::vector<Finding> found = findings({"model.layers=many", "training.sequence=0", "parallelism.zero=7"});
  ASSERT_EQ(found.size(), 3);
  EXPECT_THAT(found[0].sentence, HasSubstr("model.layers"));
  EXPECT_THAT(found[1].sentence, HasSubstr("parallelism.zero"));
  EXPECT_THAT(found[2].sentence, HasSubstr("training.sequence"));
}

TEST(LintRules, RefusalsHaveTheirPlace) {
  std::vector<std::string> lines = base_lines();
  lines[4] = "training: {sequence: 1023, micro_batch: 1, global_batch: 16}";
  const std::vector<Finding> found = findings({}, joined_lines(lines));
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].place.line, 5);
  EXPECT_EQ(found[0].place.column, 22);
}

TEST(LintRules, WarningsOfEveryCommandWithFixes) {
  const Finding found = only("tp-beyond-node", {usual_batch, "parallelism.order=[dp, tp, cp, ep, pp]"});
  EXPECT_THAT(found.fix, testing::ElementsAre("parallelism.order=", "parallelism.placement="));
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=3", "parallelism.pp=1", "parallelism.dp=", "parallelism.tp=8"}),
              Contains("small-shard-group"));
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=3", "parallelism.pp=1", "parallelism.dp="}),
              Not(Contains("small-shard-group")));
}

// tp 4 * cp 2 is a node of 8 GPUs, tp 4 * cp 4 two of them, and 8 / tp 4 = 2 is the cp that stays inside.
TEST(LintRules, ContextParallelismBeyondTheNode) {
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
TEST(LintRules, ManyExpertRanks) {
  const auto with = [](const std::string& ep, const std::string& more, const std::string& cluster = "dgx-h100, gpus: 128") {
    std::vector<std::string> lines = base_lines();
    lines[1] = "model: {layers: 8, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096, moe: {experts: 64, top_k: 8" +
               more + "}}";
    lines[2] = "cluster: {preset: " + cluster + "}";
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
  const std::string racks = "gb200-nvl72, gpus: 128, gpus_per_node: 64, nics_per_node: 64";  // no NIC between experts
  EXPECT_TRUE(std::ranges::none_of(findings({usual_batch}, with("64", "", racks)), is_it));
}

// 32 GPUs dealt out to 4 nodes in turn: rank r is GPU r / 4 of node r % 4. Data-parallel neighbours are 4 apart, on one node.
// Pipeline neighbours are 16 apart, on one node too. A list that swaps two GPUs of one node puts one group on two rails.
TEST(LintRules, CrossedRails) {
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

TEST(LintRules, FewMicroBatches) {
  // 32 / (tp 4 * pp 4) = 2 replicas: 2 * 2 sequences of micro-batch 2 are 2 micro-batches for 4 stages
  const std::vector<std::string> few{"parallelism.pp=4", "parallelism.dp=2", "training.micro_batch=2", "training.global_batch=8"};
  const Finding found = only("few-micro-batches", few);
  EXPECT_THAT(found.sentence, HasSubstr("2 micro-batches for 4 pipeline stages: at least 60 %"));  // 3 / (3 + 2)
  EXPECT_THAT(found.fix, testing::ElementsAre("training.micro_batch=1"));
  EXPECT_THAT(rules({"parallelism.pp=4", "parallelism.dp=2", "training.global_batch=8"}), Not(Contains("few-micro-batches")));
}

TEST(LintRules, ShardedWeightsInAPipeline) {
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=3"}), Contains("sharded-weights-in-pipeline"));
  EXPECT_THAT(rules({usual_batch, "parallelism.zero=2"}), Not(Contains("sharded-weights-in-pipeline")));
}

TEST(LintRules, VocabularyPadding) {
  const Finding found = only("vocabulary-padding", {usual_batch, "model.vocab=50260"});
  EXPECT_THAT(found.fix, testing::ElementsAre("model.vocab=50688"));  // 99 * 512
  EXPECT_EQ(found.severity, Severity::warning);                       // 12,565 columns
  EXPECT_THAT(rules({usual_batch, "model.vocab=50688"}), IsEmpty());
}

TEST(LintRules, UnevenProducts) {
  const Finding found = only("uneven-products", {usual_batch, "model.ffn=1100"});  // 275 of each rank
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(found.fix, testing::ElementsAre("model.ffn=1536"));                                  // 384 * 4
  EXPECT_EQ(only("uneven-products", {usual_batch, "model.ffn=1184"}).severity, Severity::advice);  // 296 = 37 * 8
  EXPECT_THAT(rules({usual_batch, "model.ffn=1536"}), IsEmpty());
}

TEST(LintRules, UnusualBatches) {
  EXPECT_THAT(rules({"training.global_batch=484"}), Contains("unusual-batch"));  // 0.496 million
  EXPECT_THAT(rules({"training.global_batch=492"}), IsEmpty());                  // 0.504 million
  EXPECT_THAT(rules({"training.global_batch=64000"}), Contains("unusual-batch"));
}

TEST(LintRules, UnevenExperts) {
  const std::vector<std::string> uniform{usual_batch, "model.moe={experts: 8, top_k: 2}", "parallelism.ep=4"};
  EXPECT_THAT(rules(uniform), Not(Contains("uneven-experts")));
  std::vector<std::string> uneven = uniform;
  uneven.emplace_back("model.moe.load=[3, 3, 1, 1, 1, 1, 1, 1]");  // the first rank has 6 of 12, the mean is 3
  const Finding found = only("uneven-experts", uneven);
  EXPECT_THAT(found.sentence, HasSubstr("4 expert ranks gets 2.00 times the mean"));
  EXPECT_THAT(found.fix, testing::ElementsAre("model.moe.load=uniform"));
}

TEST(LintRules, CircularTransfers) {
  const std::vector<std::string> four_stages{usual_batch, "parallelism.pp=4", "parallelism.dp=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), four_stages.begin(), four_stages.end());
    return rules(more);
  };
  EXPECT_THAT(with({"training.schedule=zb-v", "parallelism.vpp=2"}), Contains("circular-transfers"));
  EXPECT_THAT(with({"training.schedule=zb-h1"}), Not(Contains("circular-transfers")));
}

}  // namespace
}  // namespace tandem::studies::lint_rules_test
