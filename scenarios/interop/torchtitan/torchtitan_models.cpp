#include "scenarios/interop/torchtitan/torchtitan_models.h"

#include <algorithm>

#include "runtime/base/lower_case.h"
#include "scenarios/interop/scenario_sections.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/preset_specs.h"

namespace tandem::scenarios {
namespace {

/// All that makes a model, but its name.
std::string shape_of(const ModelSpec& model) {
  Scenario scenario;
  scenario.model = model;
  scenario.model.name.clear();
  return to_yaml(*scenario_sections(scenario).find("model"));
}

}  // namespace

const std::vector<TorchTitanModel>& torchtitan_models() {
  static const std::vector<TorchTitanModel> models{
      {"llama3-8b", "llama3", "8B"},
      {"llama3-70b", "llama3", "70B"},
      {"llama3-405b", "llama3", "405B"},
      {"deepseek-v2-lite", "deepseek_v3", "16B"},
      {"deepseek-v2", "deepseek_v3", "236B"},
      {"deepseek-v3", "deepseek_v3", "671B"},
      {"qwen3-0.6b", "qwen3", "0.6B"},
      {"qwen3-1.7b", "qwen3", "1.7B"},
      {"qwen3-4b", "qwen3", "4B"},
      {"qwen3-8b", "qwen3", "8B"},
      {"qwen3-14b", "qwen3", "14B"},
      {"qwen3-32b", "qwen3", "32B"},
      {"qwen3-30b-a3b", "qwen3", "30B-A3B"},
      {"qwen3-235b-a22b", "qwen3", "235B-A22B"},
      {"llama4-scout", "llama4", "17bx16e"},
      {"llama4-maverick", "llama4", "17bx128e"},
      {"gpt-oss-20b", "gpt_oss", "20b"},
      {"gpt-oss-120b", "gpt_oss", "120b"},
      {"{name: llama3-debugmodel, layers: 6, hidden: 256, heads: 16, ffn: 768, vocab: 2048}", "llama3", "debugmodel"},
      {"{name: deepseek-v3-debugmodel, layers: 6, hidden: 256, heads: 16, ffn: 1024, vocab: 2048, rotary_base: 10000, "
       "mla: {q_rank: 0, kv_rank: 512, rope_dim: 64, nope_dim: 128, v_dim: 128}, "
       "moe: {experts: 8, top_k: 3, ffn: 256, shared_experts: 2, first_dense_layers: 1, pre_softmax: true}}",
       "deepseek_v3", "debugmodel"}};
  return models;
}

bool is_torchtitan_model(std::string_view name) {
  return std::ranges::find(torchtitan_models(), name, &TorchTitanModel::name) != torchtitan_models().end();
}

const TorchTitanModel* torchtitan_model(std::string_view name, std::string_view flavor) {
  name = name.substr(name.rfind('.') + 1);  // simple_fsdp.llama3
  const std::string wanted = lower_case(std::string(flavor.substr(0, flavor.find('_'))));
  for (const TorchTitanModel& model : torchtitan_models())
    if (model.name == name && lower_case(std::string(model.flavor)) == wanted) return &model;
  return nullptr;
}

std::optional<TorchTitanModel> torchtitan_model_of(const ModelSpec& model) {
  for (const TorchTitanModel& known : torchtitan_models())
    if (known.is_preset() && shape_of(model_preset(std::string(known.model))) == shape_of(model)) return known;
  return {};
}

}  // namespace tandem::scenarios
