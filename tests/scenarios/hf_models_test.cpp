// A config.json of each architecture, written down from what its authors published, is the model of the preset, or has the
// parameters that were published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/hf_families.h"
#include "scenarios/reading/hf_fields.h"
#include "scenarios/reading/hf_model.h"
#include "scenarios/reading/json_tree.h"
#include "scenarios/reading/load.h"
#include "scenarios/reading/sections.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::hf_models_test {
namespace {

const std::string folder = TANDEM_SOURCE_DIR "/tests/scenarios/hf/";

ModelSpec model_of(const std::string& model, const std::vector<std::string>& changes = {}) {
  std::vector<std::string> options{"model=" + model,  "parallelism.tp=1", "parallelism.pp=1",
                                   "parallelism.dp=", "cluster.gpus=1",   "training.sequence=128"};
  options.insert(options.end(), changes.begin(), changes.end());
  return parse_scenario(base_text(), "s.yaml", options).model;
}

/// All that makes a model, but its name.
std::string shape_of(ModelSpec model) {
  model.name.clear();
  return to_yaml(write_model(model));
}

/// What the config says and the preset does not, as it is of papers that leave it out, or has other rates from a paper.
struct OfPreset {
  std::string name;
  std::vector<std::string> stated = {};
};

const std::vector<OfPreset>& of_presets() {
  static const std::vector<OfPreset> all{
      {"llama3-8b"},
      {"llama4-scout"},
      {"llama4-maverick"},
      {"mistral-7b"},
      {"mixtral-8x7b", {"model.moe.balance_loss=0.02"}},
      {"qwen2-57b-a14b"},
      {"qwen3-4b"},
      {"qwen3-235b-a22b", {"model.moe.balance_loss=0.001"}},
      {"qwen3-next-80b-a3b"},
      {"deepseek-v2", {"model.moe.balance_loss=0.001"}},
      {"deepseek-v2-lite"},
      // The defaults, where the preset has the rate and the scope of its paper.
      {"deepseek-v3", {"model.moe.balance_loss=0.01", "model.moe.balance_scope=micro-batch"}},
      {"deepseek-v3.2", {"model.moe.balance_loss=0.01", "model.moe.balance_scope=micro-batch"}},
      // As DeepSeek published it, and as transformers writes it.
      {"deepseek-v4-flash", {"model.moe.balance_loss=0.01", "model.moe.balance_scope=micro-batch"}},
      {"deepseek-v4-pro", {"model.moe.balance_loss=0.01", "model.moe.balance_scope=micro-batch"}},
      {"glm-5"},
      {"qwen3.5-397b-a17b", {"model.moe.balance_loss=0.001"}},
      {"kimi-k2"},
      {"gpt-oss-120b"},
      {"glm-4.5", {"model.moe.balance_loss=0.01", "model.moe.balance_scope=micro-batch"}},
      {"glm-4.5-air", {"model.moe.balance_loss=0.01", "model.moe.balance_scope=micro-batch"}},
      {"minimax-m1"},
      {"gemma3-1b"},
      {"gemma3-4b"},
      {"gemma3-27b"},
      {"nemotron-h-8b"},
      {"nemotron-3-nano"},
      {"olmo2-7b"}};
  return all;
}

TEST(HfModels, AreTheirPresets) {
  for (const OfPreset& preset : of_presets())
    EXPECT_EQ(shape_of(model_of(folder + preset.name + ".json")), shape_of(model_of(preset.name, preset.stated))) << preset.name;
}

/// Those without a preset.
struct Published {
  std::string name, source;
  double billions = 0, last_digit = 0;
};

TEST(HfModels, HaveTheParametersThatWerePublished) {
  const std::vector<Published> all{{"qwen2.5-7b", "size of the weights of Qwen/Qwen2.5-7B", 7.62, 0.01},
                                   {"gemma-2b", "model card of google/gemma-2b", 2.51, 0.01},
                                   {"gemma-2-2b", "model card of google/gemma-2-2b", 2.61, 0.01},
                                   {"olmo3-32b", "model card of allenai/Olmo-3-1125-32B", 32.2, 0.1},
                                   {"phi3-mini", "model card of microsoft/Phi-3-mini-4k-instruct", 3.8, 0.1},
                                   {"granite-3.1-8b", "model card of ibm-granite/granite-3.1-8b-base", 8.17, 0.01},
                                   {"granite-3.1-1b-a400m", "model card of ibm-granite/granite-3.1-1b-a400m-base", 1.33, 0.01},
                                   {"minimax-m2", "model card of MiniMaxAI/MiniMax-M2, without its three MTP modules", 229, 1}};
  for (const Published& one : all) {
    const ModelSpec model = model_of(folder + one.name + ".json", {"model.mtp_depth=0"});
    EXPECT_NEAR(static_cast<double>(parameter_count(model)) / 1e9, one.billions, 0.51 * one.last_digit)
        << one.name << ": " << one.source;
  }
}

/// Tensor by tensor, as modeling_granitemoe.py has them.
TEST(HfModels, ParametersOfAMixtureAreThoseOfItsTensors) {
  const std::int64_t h = 1024, heads = 16 * 64, keys = 8 * 64, experts = 32, ffn = 512;
  const std::int64_t layer = h * (heads + 2 * keys) + heads * h + experts * 3 * h * ffn + h * experts + 2 * h;
  EXPECT_EQ(parameter_count(model_of(folder + "granite-3.1-1b-a400m.json")), 49155 * h + 24 * layer + h);
}

TEST(HfModels, EachFamilyHasAConfigHere) {
  std::set<std::string> families;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const YamlNode config = parse_json(read_text_file(entry.path().string(), "a config"), entry.path().string());
    const HfFamily* family = find_hf_family(config.find("model_type")->text);
    ASSERT_NE(family, nullptr) << entry.path();
    families.emplace(family->type);
  }
  for (const std::string& type : hf_model_types())
    EXPECT_TRUE(families.contains(std::string(find_hf_family(type)->type))) << type;
}

TEST(HfModels, EachConfigHereIsHeldAgainstSomething) {
  std::set<std::string> held{"qwen2.5-7b", "gemma-2b",       "gemma-2-2b", "olmo3-32b",
                             "phi3-mini",  "granite-3.1-8b", "minimax-m2", "granite-3.1-1b-a400m"};
  for (const OfPreset& preset : of_presets()) held.insert(preset.name);
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_TRUE(held.contains(entry.path().stem().string())) << entry.path();
}

TEST(HfModels, AllFieldsOfTheConfigsHereAreKnown) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().string();
    EXPECT_THAT(read_hf_model(read_text_file(file, "a config"), file).unused, testing::IsEmpty()) << file;
  }
}

TEST(HfModels, EachFamilyIsDocumented) {
  const std::string page = read_text_file(TANDEM_SOURCE_DIR "/docs/commands/import.md", "a page");
  for (const std::string& type : hf_model_types())
    EXPECT_THAT(page, testing::HasSubstr("`" + std::string(find_hf_family(type)->type) + "`"));
}

TEST(HfModels, AFieldIsInOneTable) {
  for (const HfNotModelled& field : hf_not_modelled()) EXPECT_FALSE(changes_no_step(field.field)) << field.field;
}

TEST(HfModels, DefaultsAreOfFamilies) {
  for (const HfDefault& known : hf_defaults()) {
    const HfFamily* family = find_hf_family(known.type);
    ASSERT_NE(family, nullptr) << known.type;
    EXPECT_EQ(family->type, known.type) << "another name of it";
  }
}

}  // namespace
}  // namespace tandem::scenarios::hf_models_test
