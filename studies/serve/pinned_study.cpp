#include "studies/serve/pinned_study.h"

#include <algorithm>
#include <map>

#include "scenarios/reading/document.h"

namespace tandem::studies {
namespace {

/// The values of a scenario as YAML, by path.
using Leaves = std::map<std::string, std::string>;

void add_leaves(const YamlNode& node, const std::string& path, Leaves& leaves) {
  if (node.kind != YamlNode::Kind::mapping || node.entries.empty()) {
    leaves[path] = to_yaml(node);
    return;
  }
  for (const YamlNode::Entry& entry : node.entries)
    add_leaves(entry.value, path.empty() ? entry.key : path + "." + entry.key, leaves);
}

}  // namespace

std::string pinned_study(const std::vector<ServedScenario>& pinned, const std::filesystem::path& folder) {
  if (pinned.empty()) throw InputError({"the request", 0, 0}, "there is no scenario, expected at least one");
  std::vector<Leaves> points;
  YamlNode first;
  for (const ServedScenario& scenario : pinned) {
    YamlNode document = source_of(scenario, folder).unresolved();
    document.erase("name");
    add_leaves(document, "", points.emplace_back());
    if (points.size() == 1) first = std::move(document);
  }
  std::map<std::string, bool> differs;
  for (const Leaves& point : points)
    for (const auto& [path, value] : point)
      for (const Leaves& other : points) {
        const auto same = other.find(path);
        differs[path] |= same == other.end() || same->second != value;
      }
  std::string text = "name: pinned\nscenario: " + to_yaml(first) + "\n";
  const auto is_different = [](const auto& path) { return path.second; };
  if (std::ranges::none_of(differs, is_different)) differs.begin()->second = true;  // a study varies something
  text += "skip_invalid: true\npoints:\n";
  for (const Leaves& point : points) {
    std::string fields;
    for (const auto& [path, varies] : differs) {
      if (!varies) continue;
      const auto value = point.find(path);
      fields += (fields.empty() ? "" : ", ") + path + ": " + (value == point.end() ? "~" : value->second);  // ~: its default
    }
    text += "  - {" + fields + "}\n";
  }
  return text;
}

}  // namespace tandem::studies
