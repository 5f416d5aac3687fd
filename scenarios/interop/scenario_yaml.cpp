#include "scenarios/interop/interop.h"
#include "scenarios/reading/document.h"

namespace tandem::scenarios {

std::string scenario_yaml(const YamlNode& document) {
  std::string out;
  const auto entry_of = [](const std::string& key, const YamlNode& value) {
    YamlNode one = make_node(YamlNode::Kind::mapping, {});
    one.entries.push_back({key, key, {}, value});
    const std::string braced = to_yaml(one);  // {key: value}
    return braced.substr(1, braced.size() - 2);
  };
  for (const YamlNode::Entry& section : document.entries) {
    if (section.value.kind != YamlNode::Kind::mapping || section.value.entries.empty()) {
      out += entry_of(section.key, section.value) + "\n";
      continue;
    }
    out += "\n" + entry_of(section.key, make_node(YamlNode::Kind::null, {}));
    out.erase(out.size() - 2);  // the null's " ~"
    out += "\n";
    for (const YamlNode::Entry& field : section.value.entries) out += "  " + entry_of(field.key, field.value) + "\n";
  }
  return out;
}

}  // namespace tandem::scenarios
