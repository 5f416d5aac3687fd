#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::studies {

/// Parses a text. `file` stands for the text in messages, and `expected` says what the text should have been: "a result, which
/// ..". Throws InputError with the place where the text is no JSON.
nlohmann::ordered_json parse_json(const std::string& text, const std::string& file, const std::string& expected);

/// A value of a JSON file, and its path there: "memory.stages[3].peak_bytes". Whatever reads the value throws InputError, which
/// names the key that is missing or the value that cannot be. The JSON must outlive this.
class JsonValue {
 public:
  using Json = nlohmann::ordered_json;

  JsonValue(const Json& json, std::string file, std::string expected, std::string path = "");

  const std::string& file() const { return file_; }
  bool has(const std::string& key) const;
  JsonValue at(const std::string& key) const;
  std::vector<JsonValue> elements() const;

  double number() const;  ///< at least 0, but for rounding
  double signed_number() const;
  std::int64_t whole_number() const;
  bool truth() const;
  std::string text() const;
  void expect_object() const;

  // Leave what `value` holds where the key is missing, and a number also where it is null, which JSON has for what is no number.
  void read(const std::string& key, double& value) const;
  void read(const std::string& key, std::int64_t& value) const;
  void read(const std::string& key, std::size_t& value) const;
  void read(const std::string& key, std::string& value) const;

  InputError wrong(const std::string& expected) const;

 private:
  const Json& json_;
  std::string file_, expected_, path_;
};

}  // namespace tandem::studies
