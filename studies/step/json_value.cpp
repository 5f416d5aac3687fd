#include "studies/step/json_value.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/nearest.h"

namespace tandem::studies {
namespace {

Place place_of_byte(const std::string& text, std::size_t byte, const std::string& file) {
  const std::string before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return {.file = file,
          .line = static_cast<int>(std::ranges::count(before, '\n')) + 1,
          .column = static_cast<int>(before.size() - line_begin) + 1};
}

}  // namespace

nlohmann::ordered_json parse_json(const std::string& text, const std::string& file, const std::string& expected) {
  using Json = nlohmann::ordered_json;
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError(place_of_byte(text, error.byte, file), "is no JSON, expected " + expected);
  } catch (const Json::exception& error) {  // a number that no double holds
    throw InputError({file, 0, 0}, std::string("cannot be read as JSON (") + error.what() + "), expected " + expected);
  }
}

JsonValue::JsonValue(const Json& json, std::string file, std::string expected, std::string path)
    : json_(json), file_(std::move(file)), expected_(std::move(expected)), path_(std::move(path)) {}

bool JsonValue::has(const std::string& key) const { return json_.is_object() && json_.contains(key); }

JsonValue JsonValue::at(const std::string& key) const {
  const std::string path = path_.empty() ? key : path_ + "." + key;
  expect_object();
  if (!json_.contains(key)) throw InputError({file_, 0, 0}, "has no key " + excerpt(path) + ", expected " + expected_);
  return {json_.at(key), file_, expected_, path};
}

std::vector<JsonValue> JsonValue::elements() const {
  if (!json_.is_array()) throw wrong("a list");
  std::vector<JsonValue> values;
  for (std::size_t i = 0; i < json_.size(); ++i) values.emplace_back(json_[i], file_, expected_, fmt::format("{}[{}]", path_, i));
  return values;
}

double JsonValue::number() const {
  constexpr double rounding = -1e-9;  // of differences between times
  if (!json_.is_number() || json_.get<double>() < rounding) throw wrong("a number of at least 0");
  return json_.get<double>();
}

double JsonValue::signed_number() const {
  if (!json_.is_number()) throw wrong("a number");
  return json_.get<double>();
}

std::int64_t JsonValue::whole_number() const {
  constexpr double most = 1e18;
  const double value = number();
  if (value != std::floor(value) || value > most) throw wrong("a whole number");
  return json_.is_number_integer() ? json_.get<std::int64_t>() : static_cast<std::int64_t>(value);
}

bool JsonValue::truth() const {
  if (!json_.is_boolean()) throw wrong("true or false");
  return json_.get<bool>();
}

std::string JsonValue::text() const {
  if (!json_.is_string()) throw wrong("a text");
  return json_.get<std::string>();
}

void JsonValue::expect_object() const {
  if (!json_.is_object()) throw wrong("an object");
}

void JsonValue::read(const std::string& key, double& value) const {
  if (has(key) && !json_.at(key).is_null()) value = at(key).number();
}

void JsonValue::read(const std::string& key, std::int64_t& value) const {
  if (has(key)) value = at(key).whole_number();
}

void JsonValue::read(const std::string& key, std::size_t& value) const {
  if (has(key)) value = static_cast<std::size_t>(at(key).whole_number());
}

void JsonValue::read(const std::string& key, std::string& value) const {
  if (has(key)) value = at(key).text();
}

InputError JsonValue::wrong(const std::string& expected) const {
  if (path_.empty()) return {{file_, 0, 0}, "is not " + expected + ", expected " + expected_};
  return {{file_, 0, 0}, excerpt(path_) + " is " + excerpt(json_.dump()) + ", expected " + expected};
}

}  // namespace tandem::studies
