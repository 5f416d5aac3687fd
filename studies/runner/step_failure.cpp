#include "studies/runner/step_failure.h"

#include <nlohmann/json.hpp>

namespace tandem::studies {

nlohmann::ordered_json to_json_object(const Failure& failure) {
  return {{"failure", failure.sentence},
          {"code", static_cast<int>(failure.code)},
          {"file", failure.place.file},
          {"line", failure.place.line},
          {"column", failure.place.column}};
}

std::string to_json(const Failure& failure) {
  return to_json_object(failure).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Failure failure_from_json(const nlohmann::ordered_json& json) {
  return {.code = static_cast<ExitCode>(json.at("code").get<int>()),
          .place = {json.at("file").get<std::string>(), json.at("line").get<int>(), json.at("column").get<int>()},
          .sentence = json.at("failure").get<std::string>()};
}

}  // namespace tandem::studies
