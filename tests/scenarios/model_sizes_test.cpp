// The model presets have as many parameters as their authors say, in all and for one token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenarios/reading/load.h"
#include "scenarios/reading/presets.h"
#include "scenarios/spec/parameter_count.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::model_sizes_test {
namespace {

ModelSpec model_preset(const std::string& name) {
  return parse_scenario(base_text(), "s.yaml",
                        {"model=" + name, "parallelism.tp=1", "parallelism.pp=1", "parallelism.dp=", "cluster.gpus=1",
                         "training.sequence=1024"})
      .model;
}

/// A count as it is printed: billions, and the place of the last digit.
struct Printed {
  double billions = 0;  ///< 0: not published
  double last_digit = 0;
};

/// What a published count counts: tables and heads of vocab * hidden, and layers that predict further tokens.
struct Counted {
  int tables = 2;
  int mtp_depth = 0;
  double beside_billions = 0;  ///< vision encoders
};

/// `active`: for one token; of dense models what is published without the tables.
struct PublishedSize {
  std::string preset, source;
  Printed total;
  Counted of_total;
  Printed active;
  Counted of_active;
};

constexpr Counted whole;
constexpr Counted tied{.tables = 1};
constexpr Counted without_input{.tables = 1};
constexpr Counted layers_alone{.tables = 0};
constexpr Counted llama4{.beside_billions =
                             0.87};  // vision_config of its config.json: 34 layers of width 1408, adapter and projector
constexpr Printed not_published;

const std::vector<PublishedSize>& published_sizes() {
  static const std::vector<PublishedSize> sizes{
      {"llama3-8b", "model card of meta-llama/Meta-Llama-3-8B", {8.03, 0.01}, whole, not_published, whole},
      {"llama3-70b", "model card of meta-llama/Meta-Llama-3-70B", {70.6, 0.1}, whole, not_published, whole},
      {"llama3-405b", "arXiv 2407.21783, table 3", {405, 1}, whole, not_published, whole},
      {"llama3.1-8b", "model card of meta-llama/Llama-3.1-8B", {8.03, 0.01}, whole, not_published, whole},
      {"llama3.1-70b", "model card of meta-llama/Llama-3.1-70B", {70.6, 0.1}, whole, not_published, whole},
      {"llama3.1-405b", "model card of meta-llama/Llama-3.1-405B", {406, 1}, whole, not_published, whole},
      {"llama3.3-70b", "model card of meta-llama/Llama-3.3-70B-Instruct", {70.6, 0.1}, whole, not_published, whole},
      {"llama4-scout", "model card of meta-llama/Llama-4-Scout-17B-16E", {109, 1}, llama4, {17, 1}, whole},
      {"llama4-maverick", "model card of meta-llama/Llama-4-Maverick-17B-128E", {400, 1}, llama4, {17, 1}, whole},
      {"llama4-scout-vision", "model card of meta-llama/Llama-4-Scout-17B-16E", {109, 1}, whole, not_published, whole},
      {"llama4-maverick-vision", "model card of meta-llama/Llama-4-Maverick-17B-128E", {400, 1}, whole, not_published, whole},
      {"qwen2-vl-7b",
       "model.safetensors.index.json of Qwen/Qwen2-VL-7B-Instruct: 16.58 GB in bf16",
       {8.29, 0.01},
       whole,
       not_published,
       whole},
      {"qwen2-57b-a14b", "arXiv 2407.10671, table 1", {57, 1}, whole, {14, 1}, whole},
      {"qwen3-0.6b", "model card of Qwen/Qwen3-0.6B", {0.6, 0.1}, tied, {0.44, 0.01}, layers_alone},
      {"qwen3-1.7b", "model card of Qwen/Qwen3-1.7B", {1.7, 0.1}, tied, {1.4, 0.1}, layers_alone},
      {"qwen3-4b", "model card of Qwen/Qwen3-4B", {4.0, 0.1}, tied, {3.6, 0.1}, layers_alone},
      {"qwen3-8b", "model card of Qwen/Qwen3-8B", {8.2, 0.1}, whole, {6.95, 0.01}, layers_alone},
      {"qwen3-14b", "model card of Qwen/Qwen3-14B", {14.8, 0.1}, whole, {13.2, 0.1}, layers_alone},
      {"qwen3-32b", "model card of Qwen/Qwen3-32B", {32.8, 0.1}, whole, {31.2, 0.1}, layers_alone},
      {"qwen3-30b-a3b", "model card of Qwen/Qwen3-30B-A3B", {30.5, 0.1}, whole, {3.3, 0.1}, whole},
      {"qwen3-next-80b-a3b", "model card of Qwen/Qwen3-Next-80B-A3B-Instruct", {80, 1}, whole, {3, 1}, layers_alone},
      {"qwen3.5-397b-a17b", "model card of Qwen/Qwen3.5-397B-A17B", {397, 1}, whole, {17, 1}, whole},
      {"qwen3.5-397b-a17b-vision", "model card of Qwen/Qwen3.5-397B-A17B", {397, 1}, whole, not_published, whole},
      {"qwen3.5-122b-a10b-vision", "model card of Qwen/Qwen3.5-122B-A10B", {122, 1}, whole, not_published, whole},
      {"qwen3.5-35b-a3b-vision", "model card of Qwen/Qwen3.5-35B-A3B", {35, 1}, whole, not_published, whole},
      {"qwen3.5-122b-a10b", "model card of Qwen/Qwen3.5-122B-A10B", {122, 1}, whole, {10, 1}, whole},
      {"qwen3.5-35b-a3b", "model card of Qwen/Qwen3.5-35B-A3B", {35, 1}, whole, {3, 1}, whole},
      {"qwen3-235b-a22b", "model card of Qwen/Qwen3-235B-A22B", {235, 1}, whole, {22, 1}, whole},
      {"deepseek-v2", "arXiv 2405.04434, abstract", {236, 1}, whole, {21, 1}, without_input},
      {"deepseek-v2-lite", "arXiv 2405.04434, appendix B", {15.7, 0.1}, whole, {2.4, 0.1}, without_input},
      {"deepseek-v3", "arXiv 2412.19437, abstract", {671, 1}, whole, {37, 1}, without_input},
      {"deepseek-v3.2", "inference/config_671B_v3.2.json of deepseek-ai/DeepSeek-V3.2", {671, 1}, whole, {37, 1}, without_input},
      {"deepseek-r1", "arXiv 2501.12948, introduction", {671, 1}, whole, {37, 1}, without_input},
      {"deepseek-v4-flash", "arXiv 2606.19348, abstract", {284, 1}, whole, {13, 1}, without_input},
      {"deepseek-v4-pro", "arXiv 2606.19348, abstract", {1600, 100}, whole, {49, 1}, without_input},
      // 1.04T has room for a layer that predicts a second token, which the released weights lack.
      {"kimi-k2", "arXiv 2507.20534, table 2", {1040, 10}, {.mtp_depth = 1}, {32.6, 0.1}, whole},
      {"gpt-oss-20b", "arXiv 2508.10925, table 1", {20.91, 0.01}, whole, {3.61, 0.01}, without_input},
      {"gpt-oss-120b", "arXiv 2508.10925, table 1", {116.83, 0.01}, whole, {5.13, 0.01}, without_input},
      {"glm-4.5", "arXiv 2508.06471, table 1", {355, 1}, {.tables = 0, .mtp_depth = 1}, {32, 1}, layers_alone},
      {"glm-4.6", "model card of zai-org/GLM-4.6", {355, 1}, {.tables = 0, .mtp_depth = 1}, {32, 1}, layers_alone},
      {"glm-5", "model card of zai-org/GLM-5", {744, 1}, whole, {40, 1}, without_input},
      {"glm-4.5-air", "arXiv 2508.06471, table 1", {106, 1}, layers_alone, {12, 1}, layers_alone},
      {"mistral-7b", "model card of mistralai/Mistral-7B-v0.1", {7.24, 0.01}, whole, not_published, whole},
      {"mixtral-8x7b", "arXiv 2401.04088, section 1", {47, 1}, whole, {13, 1}, whole},
      {"mixtral-8x22b", "model card of mistralai/Mixtral-8x22B-v0.1", {141, 1}, whole, {39, 1}, whole},
      {"grok-1", "README of xai-org/grok-1", {314, 1}, tied, not_published, whole},
      {"gemma3-1b", "arXiv 2503.19786, table 1", {1.000, 0.001}, tied, {0.698, 0.001}, layers_alone},
      {"gemma3-4b", "arXiv 2503.19786, table 1", {3.884, 0.001}, tied, {3.209, 0.001}, layers_alone},
      {"gemma3-12b", "arXiv 2503.19786, table 1", {11.771, 0.001}, tied, {10.759, 0.001}, layers_alone},
      {"gemma3-27b", "arXiv 2503.19786, table 1", {27.016, 0.001}, tied, {25.600, 0.001}, layers_alone},
      // With the 417M of table 1's vision encoder.
      {"gemma3-4b-vision", "arXiv 2503.19786, table 1", {4.301, 0.001}, tied, not_published, whole},
      {"gemma3-12b-vision", "arXiv 2503.19786, table 1", {12.188, 0.001}, tied, not_published, whole},
      {"gemma3-27b-vision", "arXiv 2503.19786, table 1", {27.433, 0.001}, tied, not_published, whole},
      {"olmo2-7b", "model card of allenai/OLMo-2-1124-7B", {7.3, 0.1}, whole, not_published, whole},
      {"olmo2-13b", "model card of allenai/OLMo-2-1124-13B", {13.7, 0.1}, whole, not_published, whole},
      {"olmo2-32b", "model card of allenai/OLMo-2-0325-32B", {32.2, 0.1}, whole, not_published, whole},
      {"minimax-text-01", "arXiv 2501.08313, abstract", {456, 1}, whole, {45.9, 0.1}, layers_alone},
      {"minimax-m1", "arXiv 2506.13585, section 1", {456, 1}, whole, {45.9, 0.1}, layers_alone},
      {"nemotron-4-15b", "arXiv 2402.16819, section 2", {15.7, 0.1}, whole, {12.5, 0.1}, layers_alone},
      {"nemotron-4-340b", "arXiv 2406.11704, section 2", {341.0, 0.1}, whole, {331.6, 0.1}, layers_alone},
      {"nemotron-h-8b", "arXiv 2504.03624, section 2 and config.json: 8.1 B", {8.1, 0.1}, whole, not_published, whole},
      {"nemotron-h-47b", "model card of nvidia/Nemotron-H-47B-Base-8K", {47, 1}, whole, not_published, whole},
      {"nemotron-h-56b", "model card of nvidia/Nemotron-H-56B-Base-8K", {56, 1}, whole, not_published, whole},
      {"nemotron-3-nano",
       "model card of nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
       {31.6, 0.1},
       whole,
       {3.2, 0.1},
       without_input},
      {"nemotron-3-super",
       "model card of nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
       {120.6, 0.1},
       whole,
       {12.7, 0.1},
       whole},
      {"nemotron-3-ultra",
       "model card of nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
       {550, 10},
       whole,
       {55, 1},
       without_input},
      {"gpt3-175b", "arXiv 2005.14165, table 2.1", {175, 1}, tied, not_published, whole}};
  return sizes;
}

/// Billions that `count` has of the preset, by what was counted.
double counted(const std::string& preset, std::int64_t (*count)(const ModelSpec&), const Counted& what) {
  ModelSpec model = model_preset(preset);
  model.mtp_depth = what.mtp_depth;
  const std::int64_t tables = what.tables - (model.tied_embeddings ? 1 : 2);
  return static_cast<double>(count(model) + tables * model.vocab * model.hidden) / 1e9 + what.beside_billions;
}

/// The published number lies within half a unit of its last digit from what is printed; the preset's within 1 % of that.
void expect_as_printed(double billions, const Printed& printed, const PublishedSize& size, const char* what) {
  if (printed.billions == 0) return;
  EXPECT_NEAR(billions, printed.billions, 0.01 * printed.billions + printed.last_digit / 2)
      << size.preset << ", " << what << ": " << size.source;
}

TEST(ModelSizes, AreAsPublished) {
  for (const PublishedSize& size : published_sizes()) {
    expect_as_printed(counted(size.preset, parameter_count, size.of_total), size.total, size, "in all");
    expect_as_printed(counted(size.preset, active_parameter_count, size.of_active), size.active, size, "for one token");
  }
}

// But for those that nobody published, and Megatron-LM's, which have a table of their own (presets_test.cpp).
TEST(ModelSizes, EveryPresetIsListed) {
  std::vector<std::string> listed{"tiny-gpt", "tiny-llama", "gpt4-scale-moe", "moe-1t", "moe-1t-200b-dense"};
  for (const PublishedSize& size : published_sizes()) listed.push_back(size.preset);
  for (const std::string& name : preset_names(PresetKind::model)) {
    if (name.starts_with("megatron-")) continue;
    EXPECT_THAT(listed, testing::Contains(name));
  }
}

}  // namespace
}  // namespace tandem::scenarios::model_sizes_test
