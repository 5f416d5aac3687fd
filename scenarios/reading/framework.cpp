#include "scenarios/reading/framework.h"

#include "runtime/base/nearest.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/reader.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {
namespace {

bool is_compiled(const YamlNode& training) {
  const YamlNode* compiled = training.find("compiled");
  return compiled != nullptr && boolean_of(*compiled, "training.compiled");
}

/// That a preset says it of.
std::vector<std::string> frameworks_that_compile() {
  std::vector<std::string> names = preset_names(PresetKind::framework);
  std::erase_if(names, [](const std::string& name) {
    return preset_fields(PresetKind::framework, make_scalar(name, {}), "").find("compiled") == nullptr;
  });
  return names;
}

}  // namespace

void apply_framework(YamlNode& scenario) {
  YamlNode& training = *scenario.find("training");
  YamlNode* framework = training.find("framework");
  const bool compiled = is_compiled(training);
  if (framework == nullptr || framework->kind != YamlNode::Kind::mapping) {
    if (compiled)
      throw InputError(training.find("compiled")->place,
                       "training.compiled needs a framework that torch.compile is known of, such as training.framework: " +
                           joined(frameworks_that_compile()));
    return;
  }
  const YamlNode* when_compiled = framework->find("compiled");
  if (compiled && when_compiled == nullptr)
    throw InputError(training.find("compiled")->place,
                     "training.framework does not say what torch.compile makes of it, expected training.compiled: false");
  if (compiled) overlay(*framework, YamlNode(*when_compiled));
  framework->erase("compiled");
  const YamlNode* precision = training.find("precision");
  const YamlNode* in_fp16 = framework->find("fp16");
  if (in_fp16 != nullptr && precision != nullptr && precision->text == "fp16") overlay(*framework, YamlNode(*in_fp16));
  framework->erase("fp16");
  const YamlNode* in_fp8 = framework->find("fp8");
  if (in_fp8 != nullptr && precision != nullptr && precision->text == "fp8") {
    const YamlNode* recipe = training.find("fp8_recipe");
    const YamlNode* of_recipe = in_fp8->find(recipe == nullptr ? name_of(Fp8Recipe::delayed) : recipe->text);
    if (of_recipe != nullptr) overlay(*framework, YamlNode(*of_recipe));
  }
  framework->erase("fp8");
  const YamlNode* stated = framework->find("defaults");
  if (stated == nullptr) return;
  const YamlNode defaults = *stated;
  framework->erase("defaults");
  fill_in(scenario, defaults);
}

}  // namespace tandem::scenarios
