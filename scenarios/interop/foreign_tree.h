#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Another program's nested configuration: values by path ("training.seq_len"), each with its place. A value of null counts as
/// none. What was asked for is known; `unknown` tells the rest. All getters throw InputError for a value of another kind.
class ForeignTree {
 public:
  ForeignTree(YamlNode root, std::string file) : root_(std::move(root)), file_(std::move(file)) { root_.place.file = file_; }

  /// Where nothing stands at `path`, what stands at `other` is meant, as in other versions of the program.
  void also_called(const std::string& path, std::string other) { others_[path].push_back(std::move(other)); }

  const YamlNode* find(const std::string& path);
  bool has(const std::string& path) { return find(path) != nullptr; }
  /// Whether a mapping holds something at `path`, null too.
  bool mentions(const std::string& path) const { return find_path(root_, path) != nullptr; }
  /// The place of the value, or the file.
  Place place(const std::string& path);
  /// How the file calls it, for sentences.
  std::string spelled(const std::string& path) const;

  std::string text(const std::string& path, const std::string& fallback);
  std::int64_t integer(const std::string& path, std::int64_t fallback);
  /// As `integer`; throws for less than 1, too.
  std::int64_t positive(const std::string& path, std::int64_t fallback);
  double number(const std::string& path, double fallback);
  bool boolean(const std::string& path, bool fallback);
  /// Items of a list of texts; nothing where there is none.
  std::vector<std::string> texts(const std::string& path);

  /// Says that all at and below `path` changes nothing that a scenario has.
  void pass_over(const std::string& path) { passed_over_.insert(path); }
  /// The paths of values that nobody asked for, in the file's order. `trivial`: those that are false, 0 or empty as well.
  std::vector<std::string> unknown(bool trivial = false) const;

  const YamlNode& root() const { return root_; }
  const std::string& file() const { return file_; }

 private:
  YamlNode root_;
  std::string file_;
  std::map<std::string, std::vector<std::string>> others_;
  std::set<std::string, std::less<>> known_, passed_over_;

  void collect(const YamlNode& node, const std::string& path, bool trivial, std::vector<std::string>& paths) const;
};

/// Whether a scalar says true in any of YAML's, JSON's or Python's ways; nothing where it is no truth value.
enum class Truth : std::uint8_t {
  no,
  yes,
  neither
};
Truth truth_of(const YamlNode& node);

/// Parses TOML into the tree that YAML gives. Throws InputError with the place.
YamlNode parse_toml(const std::string& text, const std::string& file);

}  // namespace tandem::scenarios
