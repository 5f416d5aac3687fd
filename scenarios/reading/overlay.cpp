#include "scenarios/reading/overlay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/nearest.h"
#include "runtime/base/printable.h"
#include "scenarios/reading/aliases.h"

namespace tandem::scenarios {
namespace {

/// The keys of "a.b.c", or none where `path` is not of that form.
std::vector<std::string> split_path(const std::string& path) {
  constexpr std::size_t deepest_field = 8;
  std::vector<std::string> keys;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    if (dot == start || keys.size() == deepest_field) return {};
    keys.push_back(path.substr(start, dot - start));
    start = dot + 1;
  }
  return keys;
}

YamlNode nested(const std::vector<std::string>& keys, YamlNode value, const Place& place) {
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    YamlNode outer = make_node(YamlNode::Kind::mapping, place);
    outer.entries.push_back({*key, *key, place, std::move(value)});
    value = std::move(outer);
  }
  return value;
}

/// Takes away the field at which `patch`, a chain of mappings with one field each, ends.
void remove(YamlNode& base, const YamlNode& patch) {
  const YamlNode::Entry& entry = patch.entries.front();
  YamlNode* found = base.find(entry.key);
  if (found == nullptr) return;
  if (entry.value.kind == YamlNode::Kind::mapping)
    remove(*found, entry.value);
  else
    base.erase(entry.key);
}

void name_to_mapping(YamlNode* node) {
  if (node == nullptr || node->kind != YamlNode::Kind::scalar) return;
  YamlNode name = std::move(*node);
  *node = make_node(YamlNode::Kind::mapping, name.place);
  node->entries.push_back({"preset", "preset", name.place, name});
}

}  // namespace

void overlay(YamlNode& base, const YamlNode& patch) {
  if (base.kind != YamlNode::Kind::mapping || patch.kind != YamlNode::Kind::mapping) {
    base = patch;
    return;
  }
  for (const YamlNode::Entry& entry : patch.entries) {
    const auto existing = std::ranges::find(base.entries, entry.key, &YamlNode::Entry::key);
    if (existing == base.entries.end()) {
      base.entries.push_back(entry);
    } else {
      overlay(existing->value, entry.value);
      existing->spelled = entry.spelled;
      existing->place = entry.place;
    }
  }
}

void fill_in(YamlNode& node, const YamlNode& defaults) {
  for (const YamlNode::Entry& entry : defaults.entries) {
    YamlNode* existing = node.find(entry.key);
    if (existing == nullptr)
      node.entries.push_back(entry);
    else if (existing->kind == YamlNode::Kind::mapping && entry.value.kind == YamlNode::Kind::mapping)
      fill_in(*existing, entry.value);
  }
}

void apply_override(YamlNode& scenario, const std::string& option) {
  const Place place{.file = "--set " + printable(option)};
  const std::size_t equals = option.find('=');
  if (equals == std::string::npos || split_path(option.substr(0, equals)).empty())
    throw InputError(place, "expected --set path=value, such as --set parallelism.tp=4");
  const std::string value_text = option.substr(equals + 1);
  YamlNode value = make_node(YamlNode::Kind::null, place);
  if (value_text.find_first_not_of(' ') != std::string::npos) value = parse_yaml(value_text, place.file, Lines::none);
  apply_override(scenario, Assignment{option.substr(0, equals), place, std::move(value)});
}

void apply_override(YamlNode& scenario, const Assignment& assignment) {
  const auto& [path, place, value] = assignment;
  const std::vector<std::string> keys = split_path(path);
  if (keys.empty()) throw InputError(place, excerpt(path) + " names no field, expected a path such as parallelism.tp");
  const bool removed = value.kind == YamlNode::Kind::null;
  YamlNode patch = nested(keys, value, place);
  rename_aliases(patch);
  if (removed) {
    remove(scenario, patch);
    return;
  }
  overlay(scenario, patch);
  expand_preset_names(scenario);
}

void for_each_other_gpu(YamlNode& cluster, const std::function<void(YamlNode*)>& visit) {
  YamlNode* others = cluster.find("other_gpus");
  if (others == nullptr) return;
  if (others->kind == YamlNode::Kind::mapping) visit(others->find("gpu"));
  for (YamlNode& item : others->items) visit(item.find("gpu"));
}

void expand_preset_names(YamlNode& scenario) {
  name_to_mapping(scenario.find("model"));
  name_to_mapping(scenario.find("campaign"));
  if (YamlNode* training = scenario.find("training")) name_to_mapping(training->find("framework"));
  YamlNode* cluster = scenario.find("cluster");
  name_to_mapping(cluster);
  if (cluster == nullptr) return;
  name_to_mapping(cluster->find("gpu"));
  for_each_other_gpu(*cluster, name_to_mapping);
}

}  // namespace tandem::scenarios
