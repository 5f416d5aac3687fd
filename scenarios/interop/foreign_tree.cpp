#include "scenarios/interop/foreign_tree.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/base/lower_case.h"
#include "runtime/base/nearest.h"

namespace tandem::scenarios {
namespace {

std::optional<double> number_of(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted) return {};
  std::string digits = node.text;
  std::erase(digits, '_');
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data() + (digits.starts_with('+') ? 1 : 0), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value)) return {};
  return value;
}

constexpr double largest_integer = 9e15;  // below which every whole number is a double

bool is_trivial(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return true;
    case YamlNode::Kind::scalar:
      return node.text.empty() || truth_of(node) == Truth::no || number_of(node) == 0.0;
    case YamlNode::Kind::sequence:
      return std::ranges::all_of(node.items, is_trivial);
    case YamlNode::Kind::mapping:
      return node.entries.empty();
  }
  return false;
}

/// Whether the mapping says of itself that it is not in use.
bool is_off(const YamlNode& node) {
  for (const char* key : {"enabled", "enable"})
    if (const YamlNode* on = node.find(key); on != nullptr && truth_of(*on) == Truth::no) return true;
  return false;
}

}  // namespace

Truth truth_of(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted) return Truth::neither;
  const std::string word = lower_case(node.text);
  if (word == "true" || word == "yes" || word == "on") return Truth::yes;
  return word == "false" || word == "no" || word == "off" ? Truth::no : Truth::neither;
}

std::string ForeignTree::spelled(const std::string& path) const {
  if (find_path(root_, path) != nullptr) return path;
  if (const auto found = others_.find(path); found != others_.end())
    for (const std::string& other : found->second)
      if (find_path(root_, other) != nullptr) return other;
  return path;
}

const YamlNode* ForeignTree::find(const std::string& path) {
  known_.insert(path);
  const std::string at = spelled(path);
  known_.insert(at);
  const YamlNode* node = find_path(root_, at);
  return node == nullptr || node->kind == YamlNode::Kind::null ? nullptr : node;
}

Place ForeignTree::place(const std::string& path) {
  const YamlNode* node = find(path);
  return node == nullptr ? Place{.file = file_} : node->place;
}

std::string ForeignTree::text(const std::string& path, const std::string& fallback) {
  const YamlNode* node = find(path);
  if (node == nullptr) return fallback;
  if (node->kind == YamlNode::Kind::scalar) return node->text;
  throw InputError(node->place, spelled(path) + " is no text, expected one such as \"" + fallback + "\"");
}

std::int64_t ForeignTree::integer(const std::string& path, std::int64_t fallback) {
  const YamlNode* node = find(path);
  if (node == nullptr) return fallback;
  const auto value = number_of(*node);
  if (value && std::abs(*value) < largest_integer && *value == std::floor(*value)) return static_cast<std::int64_t>(*value);
  const std::string instead = node->kind == YamlNode::Kind::scalar ? " instead of " + excerpt(node->text) : "";
  throw InputError(node->place, spelled(path) + " is no whole number, expected one" + instead);
}

std::int64_t ForeignTree::positive(const std::string& path, std::int64_t fallback) {
  const std::int64_t value = integer(path, fallback);
  if (value < 1) throw InputError(place(path), spelled(path) + " is " + std::to_string(value) + ", expected 1 or more");
  return value;
}

double ForeignTree::number(const std::string& path, double fallback) {
  const YamlNode* node = find(path);
  if (node == nullptr) return fallback;
  if (const auto value = number_of(*node)) return *value;
  throw InputError(node->place, spelled(path) + " is no number, expected one");
}

bool ForeignTree::boolean(const std::string& path, bool fallback) {
  const YamlNode* node = find(path);
  if (node == nullptr) return fallback;
  const Truth truth = truth_of(*node);
  if (truth == Truth::neither) throw InputError(node->place, spelled(path) + " is neither true nor false");
  return truth == Truth::yes;
}

std::vector<std::string> ForeignTree::texts(const std::string& path) {
  std::vector<std::string> list;
  const YamlNode* node = find(path);
  if (node == nullptr) return list;
  if (node->kind == YamlNode::Kind::scalar) return {node->text};
  for (const YamlNode& item : node->items)
    if (item.kind == YamlNode::Kind::scalar) list.push_back(item.text);
  return list;
}

std::vector<std::string> ForeignTree::unknown(bool trivial) const {
  std::vector<std::string> paths;
  collect(root_, "", trivial, paths);
  return paths;
}

void ForeignTree::collect(const YamlNode& node, const std::string& path, bool trivial, std::vector<std::string>& paths) const {
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string inner = path.empty() ? entry.key : path + "." + entry.key;
    if (passed_over_.contains(inner) || entry.key.starts_with('_')) continue;
    if (is_off(entry.value)) continue;
    if (entry.value.kind == YamlNode::Kind::mapping && !entry.value.entries.empty())
      collect(entry.value, inner, trivial, paths);
    else if (!known_.contains(inner) && (trivial || !is_trivial(entry.value)))
      paths.push_back(inner);
  }
}

}  // namespace tandem::scenarios
