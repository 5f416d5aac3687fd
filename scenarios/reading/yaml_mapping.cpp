#include "scenarios/reading/yaml_mapping.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace tandem::scenarios {

void put(YamlNode& mapping, std::string_view key, YamlNode value) {
  mapping.erase(key);
  const Place place = value.place;
  mapping.entries.push_back({std::string(key), std::string(key), place, std::move(value)});
}

void put(YamlNode& mapping, std::string_view key, std::string_view text, const Place& place) {
  put(mapping, key, make_scalar(std::string(text), place));
}

void put(YamlNode& mapping, std::string_view key, const char* text, const Place& place) {
  put(mapping, key, std::string_view(text), place);
}

void put(YamlNode& mapping, std::string_view key, std::int64_t number, const Place& place) {
  put(mapping, key, std::to_string(number), place);
}

void put(YamlNode& mapping, std::string_view key, double number, const Place& place) {
  put(mapping, key, fmt::format("{}", number), place);  // the shortest text that reads as the same number
}

void put(YamlNode& mapping, std::string_view key, bool value, const Place& place) {
  put(mapping, key, value ? "true" : "false", place);
}

YamlNode list_of(const std::vector<std::string>& texts) {
  YamlNode list = make_node(YamlNode::Kind::sequence, {});
  for (const std::string& text : texts) list.items.push_back(make_scalar(text, {}));
  return list;
}

YamlNode& section_of(YamlNode& mapping, std::string_view key, const Place& place) {
  if (mapping.find(key) == nullptr) put(mapping, key, make_node(YamlNode::Kind::mapping, place));
  return *mapping.find(key);
}

}  // namespace tandem::scenarios
