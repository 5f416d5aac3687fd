#include "scenarios/reading/framework.h"

#include "runtime/base/nearest.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/reader.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {
namespace {

/// A flag of `training` that puts fields of the framework's in place of others, where the framework has them under `fields`.
struct Switch {
  const char* flag;
  const char* fields;
  const char* what;     ///< such a framework is
  const char* unknown;  ///< what a framework without `fields` does not say
};

constexpr Switch switches[] = {
    {"compiled", "compiled", "that torch.compile is known of", "what torch.compile makes of it"},
    {"cross_entropy_fusion", "fused_cross_entropy", "whose fused cross entropy is known",
     "what a fused cross entropy makes of it"},
};

/// A trait of the model that puts fields of the framework's in place of others: what it has no fused kernel for.
struct Trait {
  const char* field;  ///< of the scenario
  const char* value;  ///< that it has
  const char* fields;
  bool in_whole_graph;  ///< also where one CUDA graph holds the whole step, which has no room for what the CPU waits for
};

constexpr Trait traits[] = {
    {"model.moe.linear_bias", "true", "expert_biases", false},
    {"model.rope_scaling", "yarn", "yarn", true},
};

void apply(const Trait& trait, const YamlNode& scenario, const YamlNode& training, YamlNode& framework) {
  const YamlNode* fields = framework.find(trait.fields);
  const YamlNode* has = find_path(scenario, trait.field);
  const YamlNode* graph = training.find("cuda_graph");
  const bool whole = graph != nullptr && graph->text == name_of(CudaGraph::full);
  if (fields != nullptr && has != nullptr && has->text == trait.value && (trait.in_whole_graph || !whole))
    overlay(framework, YamlNode(*fields));
  framework.erase(trait.fields);
}

bool is_on(const YamlNode& training, const Switch& by) {
  const YamlNode* flag = training.find(by.flag);
  return flag != nullptr && boolean_of(*flag, std::string("training.") + by.flag);
}

/// That a preset says it of.
std::vector<std::string> frameworks_with(const Switch& by) {
  std::vector<std::string> names = preset_names(PresetKind::framework);
  std::erase_if(names, [&](const std::string& name) {
    return preset_fields(PresetKind::framework, make_scalar(name, {}), "").find(by.fields) == nullptr;
  });
  return names;
}

void apply(const Switch& by, const YamlNode& training, YamlNode& framework) {
  const YamlNode* fields = framework.find(by.fields);
  if (is_on(training, by)) {
    if (fields == nullptr)
      throw InputError(training.find(by.flag)->place, std::string("training.framework does not say ") + by.unknown +
                                                          ", expected training." + by.flag + ": false");
    overlay(framework, YamlNode(*fields));
  }
  framework.erase(by.fields);
}

}  // namespace

void apply_framework(YamlNode& scenario) {
  YamlNode& training = *scenario.find("training");
  YamlNode* framework = training.find("framework");
  if (framework == nullptr || framework->kind != YamlNode::Kind::mapping) {
    for (const Switch& by : switches) {
      if (is_on(training, by))
        throw InputError(training.find(by.flag)->place, std::string("training.") + by.flag + " needs a framework " + by.what +
                                                            ", such as training.framework: " + joined(frameworks_with(by)));
    }
    return;
  }
  for (const Switch& by : switches) apply(by, training, *framework);
  for (const Trait& trait : traits) apply(trait, scenario, training, *framework);
  const YamlNode* precision = training.find("precision");
  const YamlNode* in_fp16 = framework->find("fp16");
  if (in_fp16 != nullptr && precision != nullptr && precision->text == "fp16") overlay(*framework, YamlNode(*in_fp16));
  framework->erase("fp16");
  for (const DType type : {DType::f8, DType::f4}) {
    const std::string name(name_of(type));
    const YamlNode* by_recipe = framework->find(name);
    if (by_recipe != nullptr && precision != nullptr && precision->text == name) {
      const YamlNode* recipe = training.find("recipe");
      const YamlNode* of_recipe = by_recipe->find(recipe == nullptr              ? name_of(usual_recipe(type))
                                                  : recipe->text == "tensorwise" ? name_of(Recipe::current)
                                                                                 : recipe->text);
      if (of_recipe != nullptr) overlay(*framework, YamlNode(*of_recipe));
    }
    framework->erase(name);
  }
  const YamlNode* stated = framework->find("defaults");
  if (stated == nullptr) return;
  const YamlNode defaults = *stated;
  framework->erase("defaults");
  fill_in(scenario, defaults);
}

}  // namespace tandem::scenarios
