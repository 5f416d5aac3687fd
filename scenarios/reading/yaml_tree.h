#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::scenarios {

/// A YAML document as plain values, each with the place it was written at, whichever file that was. Aliases are expanded.
struct YamlNode {
  enum class Kind : std::uint8_t {
    null,
    scalar,
    sequence,
    mapping
  };
  struct Entry;

  Kind kind = Kind::null;
  Place place;
  std::string text;             ///< of a scalar
  bool quoted = false;          ///< a quoted scalar is text, never a number
  std::vector<YamlNode> items;  ///< of a sequence
  std::vector<Entry> entries;   ///< of a mapping, in the order written, keys distinct

  const YamlNode* find(std::string_view key) const;
  YamlNode* find(std::string_view key);
  void erase(std::string_view key);
};

struct YamlNode::Entry {
  std::string key;
  std::string spelled;  ///< as the user wrote it, when `key` stands for an alias
  Place place;          ///< of the key
  YamlNode value;
};

YamlNode make_node(YamlNode::Kind kind, const Place& place);
YamlNode make_scalar(std::string text, const Place& place);

/// Says whether places count lines. An option's value has none to point at: there every place is `file` alone.
enum class Lines : std::uint8_t {
  counted,
  none
};

/// What a scenario's file is expected to be, as messages say it.
inline constexpr const char* a_scenario = "a scenario in YAML";

/// Parses one document. Besides wrong syntax, refuses what no scenario needs and what could exhaust the process: several
/// documents, tags, duplicate keys, keys that are not plain text, nesting deeper than 32, cyclic aliases, aliases that expand to
/// more than 20,000 nodes. Throws InputError.
YamlNode parse_yaml(const std::string& text, const std::string& file, Lines lines = Lines::counted);

/// Returns the value at "a.b.c" below `root`, or null; items of a sequence count from 0, as in "a.0.c".
const YamlNode* find_path(const YamlNode& root, std::string_view path);

/// Returns the place of the value at "a.b.c", or of the innermost mapping on the way that exists.
const Place& place_of(const YamlNode& root, std::string_view path);

}  // namespace tandem::scenarios
