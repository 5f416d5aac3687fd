#include "studies/diff/result_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* a_result = "a result, which `tandem simulate SCENARIO --json F` writes";

Place place_of_byte(const std::string& text, std::size_t byte, const std::string& file) {
  const std::string before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return {.file = file,
          .line = static_cast<int>(std::ranges::count(before, '\n')) + 1,
          .column = static_cast<int>(before.size() - line_begin) + 1};
}

Json parse(const std::string& text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError(place_of_byte(text, error.byte, file), std::string("is no JSON, expected ") + a_result);
  } catch (const Json::exception& error) {  // a number that no double holds
    throw InputError({file, 0, 0}, std::string("cannot be read as JSON (") + error.what() + "), expected " + a_result);
  }
}

/// A value of the result, and where it lies: "memory.stages[3].peak_bytes".
class Value {
 public:
  Value(const Json& json, std::string file, std::string path = "")
      : json_(json), file_(std::move(file)), path_(std::move(path)) {}

  bool has(const std::string& key) const { return json_.is_object() && json_.contains(key); }

  Value at(const std::string& key) const {
    const std::string path = path_.empty() ? key : path_ + "." + key;
    if (!json_.is_object()) throw wrong("an object");
    if (!json_.contains(key)) throw InputError({file_, 0, 0}, "has no key " + excerpt(path) + ", expected " + a_result);
    return {json_.at(key), file_, path};
  }

  std::vector<Value> elements() const {
    if (!json_.is_array()) throw wrong("a list");
    std::vector<Value> values;
    for (std::size_t i = 0; i < json_.size(); ++i) values.emplace_back(json_[i], file_, fmt::format("{}[{}]", path_, i));
    return values;
  }

  std::vector<std::string> keys() const {
    if (!json_.is_object()) throw wrong("an object");
    std::vector<std::string> keys;
    for (const auto& [key, value] : json_.items()) keys.push_back(key);
    return keys;
  }

  double number() const {
    if (!json_.is_number() || json_.get<double>() < 0) throw wrong("a number of at least 0");
    return json_.get<double>();
  }

  std::int64_t whole_number() const {
    constexpr double most = 1e18;
    const double value = number();
    if (value != std::floor(value) || value > most) throw wrong("a whole number");
    return static_cast<std::int64_t>(value);
  }

  std::string text() const {
    if (!json_.is_string()) throw wrong("a text");
    return json_.get<std::string>();
  }

  InputError wrong(const std::string& expected) const {
    if (path_.empty()) return {{file_, 0, 0}, "is not " + expected + ", expected " + a_result};
    return {{file_, 0, 0}, excerpt(path_) + " is " + excerpt(json_.dump()) + ", expected " + expected};
  }

 private:
  const Json& json_;
  std::string file_, path_;
};

/// Adds `parent.keys` in their order, of `exposed` each axis.
std::vector<NamedTime> times_of(const Value& parent, std::initializer_list<std::pair<const char*, const char*>> keys) {
  std::vector<NamedTime> times;
  for (const auto& [key, name] : keys) {
    const Value value = parent.at(key);
    if (std::string(key) != "exposed") {
      times.push_back({name, value.number()});
      continue;
    }
    for (const std::string& axis : value.keys()) times.push_back({"exposed " + axis, value.at(axis).number()});
  }
  return times;
}

void expect_sum(const std::vector<NamedTime>& parts, Seconds step_time, const std::string& file) {
  constexpr double tolerance = 1e-6;
  Seconds sum = 0;
  for (const NamedTime& part : parts) sum += part.time;
  if (std::abs(sum - step_time) <= tolerance * step_time) return;
  throw InputError({file, 0, 0}, fmt::format("`time_s` adds up to {:g} s and `step_time_s` is {:g}, expected the same, as in a "
                                             "result that nobody changed",
                                             sum, step_time));
}

std::vector<NamedTime> kinds_of(const Value& list) {
  std::vector<NamedTime> kinds;
  for (const Value& kind : list.elements()) {
    const std::string name = kind.at("name").text() + " " + kind.at("phase").text();
    const auto same = std::ranges::find(kinds, name, &NamedTime::name);
    if (same == kinds.end())
      kinds.push_back({name, kind.at("time_s").number()});
    else
      same->time += kind.at("time_s").number();
  }
  return kinds;
}

}  // namespace

ComparableResult parse_result(const std::string& text, const std::string& file) {
  const Json json = parse(text, file);
  const Value root(json, file);
  ComparableResult result;
  result.name = file;
  result.scenario = root.at("scenario").text();
  result.step_time = root.at("step_time_s").number();
  if (result.step_time <= 0) throw root.at("step_time_s").wrong("more than 0");
  result.parts =
      times_of(root.at("time_s"), {{"compute", "compute"}, {"exposed", ""}, {"bubble", "bubble"}, {"optimizer", "optimizer"}});
  expect_sum(result.parts, result.step_time, file);
  for (const Value& stage : root.at("memory").at("stages").elements())
    result.memory.push_back(stage.at("peak_bytes").whole_number());

  if (root.has("gpus")) result.gpus = root.at("gpus").whole_number();
  if (root.has("tokens")) result.tokens = root.at("tokens").whole_number();
  if (root.has("tokens_per_s_per_gpu")) result.tokens_per_second_per_gpu = root.at("tokens_per_s_per_gpu").number();
  if (root.has("mfu")) result.mfu = root.at("mfu").number();
  if (root.has("run") && root.at("run").has("backend")) result.backend = root.at("run").at("backend").text();
  if (root.has("kinds")) result.kinds = kinds_of(root.at("kinds"));
  if (root.has("stages_s")) {
    result.stages.emplace();
    for (const Value& stage : root.at("stages_s").elements()) {
      result.stages->push_back(times_of(stage, {{"forward", "forward"},
                                                {"backward_input", "backward input"},
                                                {"backward_weight", "backward weight"},
                                                {"recompute", "recompute"},
                                                {"exposed", ""},
                                                {"bubble", "bubble"},
                                                {"optimizer", "optimizer"}}));
    }
  }
  return result;
}

ComparableResult read_result(const std::string& path) { return parse_result(read_text_file(path, a_result), path); }

}  // namespace tandem::studies
