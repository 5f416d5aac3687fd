#include "studies/runner/flat_json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "scenarios/reading/document.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

Cell scalar_cell(const Json& value) {
  if (value.is_boolean()) return std::int64_t{value.get<bool>()};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  return {};
}

void flatten(const Json& object, const std::string& prefix, std::vector<NamedCell>& cells) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix + key;
    if (value.is_object())
      flatten(value, name + ".", cells);
    else if (value.is_array())
      cells.push_back({name, value.dump(), true});
    else
      cells.push_back({name, scalar_cell(value)});
  }
}

template <typename T>
std::optional<T> parsed(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && parsed_to == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<NamedCell> flattened(const std::string& json_text) {
  const Json json = Json::parse(json_text, nullptr, false);
  if (!json.is_object()) throw std::runtime_error("not a JSON result");
  std::vector<NamedCell> cells;
  flatten(json, "", cells);
  return cells;
}

Cell cell_of(const YamlNode& value) {
  if (value.kind == YamlNode::Kind::null) return {};
  if (value.kind != YamlNode::Kind::scalar) return to_yaml(value);
  if (value.quoted) return value.text;
  if (value.text == "true" || value.text == "false") return std::int64_t{value.text == "true"};
  if (const auto whole = parsed<std::int64_t>(value.text)) return *whole;
  if (const auto number = parsed<double>(value.text)) return *number;
  return value.text;
}

const NamedCell* find_cell(const std::vector<NamedCell>& cells, std::string_view name) {
  const auto found = std::ranges::find(cells, name, &NamedCell::name);
  return found == cells.end() ? nullptr : &*found;
}

std::string text_of(const std::vector<NamedCell>& cells, std::string_view name) {
  const NamedCell* cell = find_cell(cells, name);
  return cell == nullptr ? "" : to_text(cell->cell);
}

std::string to_text(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return "";
}

}  // namespace tandem::studies
