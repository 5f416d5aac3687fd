// The section `campaign`: presets, what overrules them, what contradicts what; and how many parameters a checkpoint has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scenarios/checks/check_campaign.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/load_campaign.h"
#include "scenarios/reading/presets.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::campaign_spec_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Campaign campaign(const std::string& section, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> lines = base_lines();
  lines.push_back("campaign: " + section);
  return parse_campaign(joined_lines(lines), "s.yaml", overrides);
}

std::string refusal(const std::string& section, const std::vector<std::string>& overrides = {}) {
  try {
    campaign(section, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CampaignSpec, EveryPresetIsComplete) {
  const std::vector<std::string> names = preset_names(PresetKind::campaign);
  EXPECT_THAT(names, testing::ElementsAre("llama3-2024", "meta-rsc-1", "meta-rsc-2"));
  for (const std::string& name : names) {
    const CampaignSpec spec = campaign("{preset: " + name + ", tokens: 1e12}").spec;
    EXPECT_EQ(spec.preset, name);
    EXPECT_TRUE(spec.mtbf.any());
    EXPECT_GT(spec.restart, 0);
    EXPECT_EQ(spec.tokens, 1e12);
    EXPECT_EQ(spec.days, std::nullopt);
  }
  EXPECT_EQ(campaign("{days: 1}").spec.preset, "llama3-2024");
  EXPECT_EQ(campaign("meta-rsc-2", {"campaign.days=3"}).spec.preset, "meta-rsc-2");
}

// 419 interruptions of 16,384 GPUs in 54 days, 268 of GPUs, 46 of nodes, 42 of the network and 63 of software.
TEST(CampaignSpec, Llama3HasItsPublishedRates) {
  const MtbfSpec mtbf = campaign("{days: 54}").spec.mtbf;
  constexpr double hours = 54 * 24, gpus = 16384;
  EXPECT_NEAR(gpus * hours / mtbf.gpu_hours, 268, 0.01);
  EXPECT_NEAR(gpus / 8 * hours / mtbf.node_hours, 46, 0.01);
  EXPECT_NEAR(gpus * hours / mtbf.link_hours, 42, 0.01);
  EXPECT_NEAR(gpus / 8 * hours / mtbf.software_hours, 63, 0.01);
  EXPECT_NEAR(hours / campaign("{days: 54}").spec.planned_hours, 47, 0.01);
}

TEST(CampaignSpec, RatesOfTheScenarioReplaceThoseOfThePreset) {
  const MtbfSpec mtbf = campaign("{days: 54}", {"faults.mtbf={gpu_hours: 1000}"}).spec.mtbf;
  EXPECT_EQ(mtbf.gpu_hours, 1000);
  EXPECT_EQ(mtbf.node_hours + mtbf.link_hours + mtbf.software_hours, 0);
}

TEST(CampaignSpec, FieldsOfAPresetCanBeOverridden) {
  const CampaignSpec spec = campaign("{days: 54, checkpoint: {mode: async, interval_steps: 40}, spare_nodes: 3}",
                                     {"campaign.slow_node={one_in: 500, factor: 0.9, found_hours: 6}"})
                                .spec;
  EXPECT_TRUE(spec.checkpoint.asynchronous);
  EXPECT_EQ(spec.checkpoint.interval_steps, 40);
  EXPECT_EQ(spec.checkpoint.write_GBps, 2000);
  EXPECT_EQ(spec.spare_nodes, 3);
  EXPECT_EQ(spec.slow_node.one_in, 500);
}

TEST(CampaignSpec, ContradictionsNameBothFields) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> pairs{
      {"{days: 1, tokens: 1e12}", {"campaign.tokens", "campaign.days"}},
      {"{days: 1, checkpoint: {interval_s: 5, interval_steps: 5}}", {"checkpoint.interval_s ", "checkpoint.interval_steps"}},
      {"{days: 1, checkpoint: {bytes: 5e12, bytes_per_parameter: 14}}", {"checkpoint.bytes ", "checkpoint.bytes_per_parameter"}},
      {"{days: 1, checkpoint: {mode: sync, copy_GBps: 9}}", {"checkpoint.mode sync", "checkpoint.copy_GBps"}},
      {"{days: 1, slow_node: {found_hours: 9}}", {"slow_node.found_hours", "slow_node.one_in"}},
      {"{days: 1, spare_nodes: 0, slow_node: {one_in: 9, factor: 0.9, found_hours: 9}}", {"found_hours", "spare_nodes 0"}}};
  for (const auto& [section, words] : pairs) {
    const std::string sentence = refusal(section);
    EXPECT_THAT(sentence, AllOf(testing::StartsWith("s.yaml:7:"), HasSubstr(words[0]), HasSubstr(words[1])));
  }
}

/// A copy speed is held against mode sync where the user states both, not where it is a preset's.
TEST(CampaignSpec, APresetsCopySpeedDoesNotCountWhereNothingIsCopied) {
  const CheckpointSpec checkpoint = campaign("{days: 1, checkpoint: {mode: sync}}").spec.checkpoint;
  EXPECT_FALSE(checkpoint.asynchronous);
  EXPECT_EQ(checkpoint.copy_GBps, 0);
  EXPECT_GT(campaign("{days: 1, checkpoint: {mode: async}}").spec.checkpoint.copy_GBps, 0);
}

TEST(CampaignSpec, RulesNeedNoDocument) {
  CampaignSpec spec = campaign("{days: 1}").spec;
  EXPECT_FALSE(first_objection(spec));
  spec.slow_node = {.one_in = 9, .factor = 0.9, .found_hours = 9};
  spec.spare_nodes = 0;
  const auto objection = first_objection(spec);
  ASSERT_TRUE(objection);
  EXPECT_THAT(objection->fields, testing::ElementsAre("campaign.slow_node.found_hours", "campaign.spare_nodes"));
}

TEST(CampaignSpec, WrongFieldsAreRefusedWithTheirPlace) {
  EXPECT_THAT(refusal("[1]"), HasSubstr("s.yaml:7:11: campaign is a list, expected a mapping"));
  EXPECT_THAT(refusal("{days: 1}", {"faults=[1]"}), HasSubstr("faults is a list"));
  EXPECT_THAT(refusal("{}"), HasSubstr("campaign.tokens is missing"));
  EXPECT_THAT(refusal("{day: 1}"), HasSubstr("did you mean `days`?"));
  EXPECT_THAT(refusal("{days: 1, preset: llama3}"), HasSubstr("there is no campaign preset `llama3`"));
  EXPECT_THAT(refusal("{days: 1, mtbf: {gpu_hours: 1}}"), HasSubstr("faults.mtbf"));
  EXPECT_THAT(refusal("{days: 1}", {"faults.mtbf={}"}), HasSubstr("faults.mtbf is empty"));
  EXPECT_THAT(refusal("{days: 1}", {"faults.mtbf.gpu_hours=0"}), HasSubstr("faults.mtbf.gpu_hours is `0`"));
  EXPECT_THAT(refusal("{days: 1, slow_node: {one_in: 9}}"), HasSubstr("campaign.slow_node.factor is missing"));
}

TEST(CampaignSpec, ASimulationAdmitsRatesAndRefusesWrongOnes) {
  std::vector<std::string> lines = base_lines();
  lines[5] = "faults: {mtbf: {gpu_hours: 50000}}";
  EXPECT_EQ(parse_scenario(joined_lines(lines), "s.yaml", {}).name, "base");
  EXPECT_THROW(parse_scenario(joined_lines(lines), "s.yaml", {"faults.mtbf.gpu_hour=1"}), InputError);
}

/// Every tensor of the lowered model once.
std::int64_t lowered_parameters(const Scenario& scenario) {
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::map<std::string, std::int64_t> tensors;
  for (const ParameterShard& shard : dag.shards) tensors[shard.tensor] = shard.tensor_rows * shard.tensor_columns;
  std::int64_t sum = 0;
  for (const auto& [name, elements] : tensors) sum += elements;
  return sum;
}

TEST(ParameterCount, IsWhatIsLowered) {
  const std::vector<std::vector<std::string>> models{
      {},
      {"model.norm=layer", "model.gated=false", "model.tied_embeddings=true"},
      {"model.moe={experts: 8, top_k: 2, ffn: 256, shared_experts: 1, first_dense_layers: 2}", "parallelism.ep=4"},
      {"model.mla={q_rank: 64, kv_rank: 32, rope_dim: 16, nope_dim: 32, v_dim: 32}", "model.kv_heads=8"},
      {"model.mtp_depth=2"}};
  for (const std::vector<std::string>& overrides : models) {
    const Scenario scenario = parse_scenario(base_text(), "s.yaml", overrides);
    EXPECT_EQ(parameter_count(scenario.model), lowered_parameters(scenario)) << testing::PrintToString(overrides);
  }
}

}  // namespace
}  // namespace tandem::scenarios::campaign_spec_test
