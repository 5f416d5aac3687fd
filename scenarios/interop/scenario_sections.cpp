#include "scenarios/interop/scenario_sections.h"

#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {

YamlNode scenario_sections(const Scenario& scenario) {
  YamlNode document = make_node(YamlNode::Kind::mapping, {});
  put(document, "name", scenario.name);
  put(document, "model", write_model(scenario.model));
  put(document, "parallelism", write_parallelism(scenario.parallelism));
  put(document, "training", write_training(scenario.training));
  return document;
}

}  // namespace tandem::scenarios
