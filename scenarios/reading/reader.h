#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {

/// A range whose ends are part of it.
template <typename T>
struct Range {
  T min;
  T max;
};

/// What a short time, written in microseconds, may be.
constexpr Range<double> microseconds{0, 1e6};
/// What share of the elements dropout may drop.
constexpr Range<double> dropout_range{0, 0.99};

/// A name that a field may have. Without a value it is known, but a later release lowers it: give it its value to enable it.
template <typename T>
struct Choice {
  std::string_view name;
  std::optional<T> value;
};

template <typename T, std::size_t count>
std::vector<Choice<T>> choices(const std::array<Named<T>, count>& table) {
  std::vector<Choice<T>> found;
  for (const Named<T>& named : table) found.push_back({named.name, named.value});
  return found;
}

/// Values that `name_of` names.
template <typename T>
std::vector<Choice<T>> choices(std::initializer_list<T> values) {
  std::vector<Choice<T>> found;
  for (const T& value : values) found.push_back({name_of(value), value});
  return found;
}

/// The keys of a mapping that has a field for each of these values.
template <typename T, std::size_t count>
std::vector<std::string_view> keys_of(const std::array<T, count>& values) {
  std::vector<std::string_view> keys;
  for (const T& value : values) keys.push_back(name_of(value));
  return keys;
}

/// Reads one mapping of the document, field by field. Every getter checks type and range and throws InputError at the place of
/// the value; a field without a fallback is required. Fields must be among the keys announced to the constructor, which refuses
/// all others and names the nearest.
class Reader {
 public:
  Reader(const YamlNode& node, std::string path, const std::vector<std::string_view>& keys);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Returns the field as it stands, or an empty mapping.
  const YamlNode& child(std::string_view key) const;

  std::int64_t integer(std::string_view key, Range<std::int64_t> range, std::optional<std::int64_t> fallback = {}) const;
  double number(std::string_view key, Range<double> range, std::optional<double> fallback = {}) const;
  bool boolean(std::string_view key, std::optional<bool> fallback = {}) const;
  std::string text(std::string_view key, std::optional<std::string> fallback = {}) const;
  std::vector<double> numbers(std::string_view key, Range<double> range, std::vector<double> fallback) const;
  std::vector<std::int64_t> integers(std::string_view key, Range<std::int64_t> range) const;  ///< none where the field is missing
  /// Reads a number, a range such as 0-31, or a list of these.
  std::vector<Range<std::int64_t>> ranges(std::string_view key, Range<std::int64_t> range) const;

  template <typename T>
  T choice(std::string_view key, const std::vector<Choice<T>>& choices, std::optional<T> fallback = {}) const;
  /// The same for a value that is not a field of its own, such as an item of a list.
  template <typename T>
  T choice_of(const YamlNode& node, std::string_view key, const std::vector<Choice<T>>& choices) const;

  [[noreturn]] void fail(std::string_view key, const std::string& sentence) const;
  std::string full_name(std::string_view key) const;

 private:
  const YamlNode* find(std::string_view key) const;
  const YamlNode& required(std::string_view key, const std::string& expected) const;
  [[noreturn]] void refuse_choice(const YamlNode& node, std::string_view key, const std::vector<std::string>& known,
                                  const std::vector<std::string>& supported) const;

  const YamlNode& node_;
  std::string path_;
  std::vector<std::string> keys_;
};

template <typename T>
T Reader::choice_of(const YamlNode& node, std::string_view key, const std::vector<Choice<T>>& choices) const {
  std::vector<std::string> known, supported;
  for (const Choice<T>& choice : choices) {
    if (node.kind == YamlNode::Kind::scalar && node.text == choice.name && choice.value) return *choice.value;
    known.emplace_back(choice.name);
    if (choice.value) supported.emplace_back(choice.name);
  }
  refuse_choice(node, key, known, supported);
}

template <typename T>
T Reader::choice(std::string_view key, const std::vector<Choice<T>>& choices, std::optional<T> fallback) const {
  if (!has(key) && fallback) return *fallback;
  std::vector<std::string> names;
  for (const Choice<T>& choice : choices) names.emplace_back(choice.name);
  return choice_of(required(key, names.front()), key, choices);
}

/// Reads a value of true or false by itself. `name` is what messages call it. Throws InputError for anything else, quoted text
/// included.
bool boolean_of(const YamlNode& node, const std::string& name);

/// Returns the mappings of a field that is one or a list of them; none where it is missing.
std::vector<const YamlNode*> one_or_several(const YamlNode& node);

/// Says in words what stands there: a value between backquotes, "a list", "a mapping" or "nothing".
std::string describe(const YamlNode& node);

}  // namespace tandem::scenarios
