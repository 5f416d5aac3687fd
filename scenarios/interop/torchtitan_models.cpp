#include "scenarios/interop/torchtitan_models.h"

#include "scenarios/interop/scenario_sections.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/schedules/schedule_table.h"

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
    if (shape_of(preset_model(known.preset)) == shape_of(model)) return known;
  return {};
}

std::vector<std::string> torchtitan_schedules() {
  std::vector<std::string> names;
  for (const ScheduleTraits& traits : schedule_table())
    if (!traits.torchtitan.empty()) names.emplace_back(traits.torchtitan);
  return names;
}

ModelSpec preset_model(std::string_view preset) {
  YamlNode document = make_node(YamlNode::Kind::mapping, {});
  put(section_of(document, "model"), "preset", preset);
  resolve_presets(document, "");
  return read_model(*document.find("model"));
}

}  // namespace tandem::scenarios
