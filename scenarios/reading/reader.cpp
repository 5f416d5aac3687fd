#include "scenarios/reading/reader.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <stdexcept>

#include "runtime/base/nearest.h"
#include "scenarios/reading/aliases.h"

namespace tandem::scenarios {
namespace {

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string range_text(Range<double> range) { return "a number from " + shown(range.min) + " to " + shown(range.max); }
std::string range_text(Range<std::int64_t> range) {
  return "a whole number from " + grouped(range.min) + " to " + grouped(range.max);
}

/// The number that `node` holds, when it is all that stands there and lies in the range.
template <typename T>
std::optional<T> number_in(const YamlNode& node, Range<T> range) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted) return std::nullopt;
  T value{};
  const char* end = node.text.data() + node.text.size();
  const auto [parsed_to, error] = std::from_chars(node.text.data(), end, value);
  const bool inside = value >= range.min && value <= range.max;  // false for NaN
  return error == std::errc{} && parsed_to == end && inside ? std::optional(value) : std::nullopt;
}

/// Whether YAML takes a field and its value for a name, as in `{rank:5}`.
bool lacks_space(const YamlNode::Entry& entry, const std::vector<std::string>& fields) {
  return entry.value.kind == YamlNode::Kind::null &&
         std::ranges::any_of(fields, [&](const std::string& field) { return entry.key.starts_with(field + ":"); });
}

}  // namespace

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return (node.quoted ? "the text " : "") + excerpt(node.text);
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
      return "a mapping";
  }
  throw std::logic_error("unknown kind of YAML node");
}

bool boolean_of(const YamlNode& node, const std::string& name) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted && (node.text == "true" || node.text == "false"))
    return node.text == "true";
  throw InputError(node.place, name + " is " + describe(node) + ", expected true or false");
}

std::vector<const YamlNode*> one_or_several(const YamlNode& node) {
  std::vector<const YamlNode*> found;
  if (node.kind == YamlNode::Kind::sequence) {
    for (const YamlNode& item : node.items) found.push_back(&item);
  } else if (node.kind != YamlNode::Kind::null) {
    found.push_back(&node);
  }
  return found;
}

Reader::Reader(const YamlNode& node, std::string path, const std::vector<std::string_view>& keys)
    : node_(node), path_(std::move(path)), keys_(keys.begin(), keys.end()) {
  const std::string where = path_.empty() ? "the scenario" : path_;
  if (node.kind == YamlNode::Kind::null) return;
  if (node.kind != YamlNode::Kind::mapping)
    throw InputError(node.place, where + " is " + describe(node) + ", expected a mapping of: " + joined(keys_));
  for (const YamlNode::Entry& entry : node.entries) {
    if (std::ranges::find(keys_, entry.key) != keys_.end()) continue;
    const std::string unknown = where + " has no field " + excerpt(entry.key);
    if (lacks_space(entry, keys_)) throw InputError(entry.place, unknown + ", expected a space after the colon");
    // The short names first: an alias is offered only where none of them is near.
    std::vector<std::string> candidates = keys_;
    if (nearest(entry.key, keys_).empty()) std::ranges::copy(aliases_of(path_), std::back_inserter(candidates));
    if (nearest(entry.key, candidates).empty()) candidates = keys_;
    throw InputError(entry.place, unknown + suggestion(entry.key, candidates));
  }
}

const YamlNode* Reader::find(std::string_view key) const {
  if (std::ranges::find(keys_, key) == keys_.end()) throw std::logic_error("field read but not announced: " + full_name(key));
  return node_.find(key);
}

const YamlNode& Reader::child(std::string_view key) const {
  static const YamlNode nothing;
  const YamlNode* found = find(key);
  return found == nullptr ? nothing : *found;
}

const YamlNode& Reader::required(std::string_view key, const std::string& expected) const {
  const YamlNode* found = find(key);
  if (found == nullptr) throw InputError(node_.place, full_name(key) + " is missing, expected " + expected);
  return *found;
}

std::string Reader::full_name(std::string_view key) const {
  for (const YamlNode::Entry& entry : node_.entries)
    if (entry.key == key) key = entry.spelled;
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void Reader::fail(std::string_view key, const std::string& sentence) const {
  const YamlNode* found = find(key);
  throw InputError(found == nullptr ? node_.place : found->place, sentence);
}

std::int64_t Reader::integer(std::string_view key, Range<std::int64_t> range, std::optional<std::int64_t> fallback) const {
  if (!has(key) && fallback) return *fallback;
  const YamlNode& node = required(key, range_text(range));
  if (const auto value = number_in(node, range)) return *value;
  fail(key, full_name(key) + " is " + describe(node) + ", expected " + range_text(range));
}

double Reader::number(std::string_view key, Range<double> range, std::optional<double> fallback) const {
  if (!has(key) && fallback) return *fallback;
  const YamlNode& node = required(key, range_text(range));
  if (const auto value = number_in(node, range)) return *value;
  fail(key, full_name(key) + " is " + describe(node) + ", expected " + range_text(range));
}

std::vector<double> Reader::numbers(std::string_view key, Range<double> range, std::vector<double> fallback) const {
  if (!has(key)) return fallback;
  const YamlNode& list = child(key);
  if (list.kind != YamlNode::Kind::sequence) fail(key, full_name(key) + " is " + describe(list) + ", expected a list of numbers");
  std::vector<double> values;
  for (const YamlNode& item : list.items) {
    const auto value = number_in(item, range);
    if (!value) throw InputError(item.place, full_name(key) + " holds " + describe(item) + ", expected " + range_text(range));
    values.push_back(*value);
  }
  return values;
}

std::vector<std::int64_t> Reader::integers(std::string_view key, Range<std::int64_t> range) const {
  if (!has(key)) return {};
  const YamlNode& list = child(key);
  if (list.kind != YamlNode::Kind::sequence) fail(key, full_name(key) + " is " + describe(list) + ", expected a list of numbers");
  std::vector<std::int64_t> values;
  for (const YamlNode& item : list.items) {
    const auto value = number_in(item, range);
    if (!value) throw InputError(item.place, full_name(key) + " holds " + describe(item) + ", expected " + range_text(range));
    values.push_back(*value);
  }
  return values;
}

std::vector<Range<std::int64_t>> Reader::ranges(std::string_view key, Range<std::int64_t> range) const {
  const std::string expected = "a number or a range such as 0-31, from " + grouped(range.min) + " to " + grouped(range.max);
  const YamlNode& node = required(key, expected + ", or a list of these");
  std::vector<Range<std::int64_t>> found;
  const auto add = [&](const YamlNode& item) {
    const std::size_t dash = std::min(item.text.find('-'), item.text.size());
    const auto end = [&](std::string text) {
      YamlNode part = make_scalar(std::move(text), item.place);
      part.kind = item.kind;
      return number_in(part, range);
    };
    const auto first = end(item.text.substr(0, dash));
    const auto last = dash == item.text.size() ? first : end(item.text.substr(dash + 1));
    if (!first || !last || *first > *last)
      throw InputError(item.place, full_name(key) + " is " + describe(item) + ", expected " + expected);
    found.push_back({*first, *last});
  };
  if (node.kind != YamlNode::Kind::sequence) add(node);
  for (const YamlNode& item : node.items) add(item);
  return found;
}

bool Reader::boolean(std::string_view key, std::optional<bool> fallback) const {
  if (!has(key) && fallback) return *fallback;
  return boolean_of(required(key, "true or false"), full_name(key));
}

std::string Reader::text(std::string_view key, std::optional<std::string> fallback) const {
  constexpr std::size_t longest = 200;
  if (!has(key) && fallback) return *fallback;
  const YamlNode& node = required(key, "a name");
  if (node.kind == YamlNode::Kind::scalar && !node.text.empty() && node.text.size() <= longest) return node.text;
  fail(key, full_name(key) + " is " + describe(node) + ", expected a name of up to " + std::to_string(longest) + " characters");
}

void Reader::refuse_choice(const YamlNode& node, std::string_view key, const std::vector<std::string>& known,
                           const std::vector<std::string>& supported) const {
  if (node.kind != YamlNode::Kind::scalar)
    throw InputError(node.place, full_name(key) + " is " + describe(node) + ", expected one of: " + joined(known));
  if (std::ranges::find(known, node.text) != known.end())
    throw InputError(node.place, full_name(key) + " " + node.text + " is not lowered yet; supported: " + joined(supported));
  throw InputError(node.place, full_name(key) + " cannot be " + excerpt(node.text) + suggestion(node.text, known));
}

}  // namespace tandem::scenarios
