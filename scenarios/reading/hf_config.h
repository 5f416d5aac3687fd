#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reading/hf_families.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Puts the value of a field of the file into `to` as `key`; errors about the value then use the file's word, `field`.
void put_stated(YamlNode& to, std::string_view key, std::string_view field, YamlNode value);

/// The fields of a config.json, with those that its model_type has by default. Remembers what was asked for. A field that is null
/// counts as left out. Getters throw InputError at the place of a value of another kind.
class HfConfig {
 public:
  /// Takes the document of a file. Where it nests its language model (`text_config`), the fields are those of that model. Throws
  /// InputError for what is no config.json, names a model_type that is not read, or has a field without which the model would be
  /// another one.
  explicit HfConfig(YamlNode document);

  const HfFamily& family() const { return *family_; }
  const std::string& model_type() const { return type_; }
  /// Where the file names the model's type.
  const Place& type_place() const { return type_place_; }

  /// Null where the field is missing or null.
  const YamlNode* find(std::string_view field);
  bool has(std::string_view field) { return find(field) != nullptr; }
  /// The first of these fields that is there, or an empty name.
  std::string_view first_of(std::initializer_list<std::string_view> fields);
  /// Of the field, or the whole where it is missing.
  Place place(std::string_view field);

  std::int64_t integer(std::string_view field, std::optional<std::int64_t> fallback = {});
  double number(std::string_view field, double fallback);
  bool boolean(std::string_view field, bool fallback);
  std::string text(std::string_view field, const std::string& fallback);
  std::vector<std::int64_t> integers(std::string_view field);  ///< none where it is missing
  std::vector<std::string> texts(std::string_view field);      ///< none where it is missing

  /// Throws InputError unless one of the fields is there.
  void require(std::initializer_list<std::string_view> fields);
  /// Throws InputError at the field.
  [[noreturn]] void fail(std::string_view field, const std::string& sentence);

  /// Puts a field into `to` as `put_stated` does, where it is there.
  void copy(YamlNode& to, std::string_view key, std::string_view field);

  /// Whether the field is there and says more than null, false, 0 or an empty list.
  bool is_set(std::string_view field);
  /// What is set in the file and nobody asked for, in its order.
  std::vector<std::string> unasked();

 private:
  YamlNode root_, fields_;
  std::vector<std::string> stated_;
  std::set<std::string, std::less<>> asked_;
  const HfFamily* family_ = nullptr;
  std::string type_;
  Place type_place_;

  void refuse_other_models();
  void choose_family();
  void add_defaults();
};

}  // namespace tandem::scenarios
