#include "scenarios/interop/torchtitan_models.h"

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
      {"llama3-8b", "llama3", "8B"},          {"llama3-70b", "llama3", "70B"},       {"llama3-405b", "llama3", "405B"},
      {"deepseek-v3", "deepseek_v3", "671B"}, {"qwen3-30b-a3b", "qwen3", "30B-A3B"}, {"qwen3-235b-a22b", "qwen3", "235B-A22B"}};
  return models;
}

std::optional<TorchTitanModel> torchtitan_model_of(const ModelSpec& model) {
  for (const TorchTitanModel& known : torchtitan_models())
    if (shape_of(model_preset(std::string(known.preset))) == shape_of(model)) return known;
  return {};
}

}  // namespace tandem::scenarios
