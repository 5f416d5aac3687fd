#include "studies/slurm/outcome_file.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string to_outcome_file(const StepWithText& step) {
  Json json = {{"started", step.outcome.started}, {"seconds", step.outcome.seconds}};
  if (const StepFailure* failure = step.outcome.failure())
    json.update(to_json_object(*failure));
  else
    json["result"] = step.json;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StepWithText from_outcome_file(const std::string& text, const std::string& name) {
  StepWithText step;
  try {
    Json json = Json::parse(text);
    step.outcome.started = json.at("started").get<std::string>();
    step.outcome.seconds = json.at("seconds").get<double>();
    if (json.contains("failure")) {
      step.outcome.step = StepFailure{failure_from_json(json)};
    } else {
      step.json = std::move(json.at("result").get_ref<std::string&>());
      step.outcome.step = step_result_from_json(step.json, name);
    }
  } catch (const Json::exception&) {
    step.outcome.step = StepFailure{{.sentence = "'" + name + "' is no outcome of a step"}};
  } catch (const InputError& error) {
    step.outcome.step = StepFailure{{.sentence = error.what()}};
  }
  return step;
}

}  // namespace tandem::studies
