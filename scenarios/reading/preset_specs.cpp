#include "scenarios/reading/preset_specs.h"

#include "scenarios/reading/presets.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

YamlNode preset_section(const char* section, const std::string& name) {
  YamlNode document = make_node(YamlNode::Kind::mapping, {});
  put(section_of(document, section), "preset", name);
  resolve_presets(document, "");
  return *document.find(section);
}

}  // namespace

ModelSpec model_preset(const std::string& name) { return read_model(preset_section("model", name)); }

ClusterSpec cluster_preset(const std::string& name) { return read_cluster(preset_section("cluster", name)); }

}  // namespace tandem::scenarios
