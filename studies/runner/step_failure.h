#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/base/failure.h"

namespace tandem::studies {

/// Why a scenario has no result.
struct StepFailure : Failure {
  bool refused = false;  ///< nothing was simulated, as the scenario is wrong
};

/// Returns the failure of a scenario that its reader refused.
inline StepFailure refusal(const InputError& error) {
  return {{.code = ExitCode::wrong_input, .place = error.place(), .sentence = error.sentence()}, true};
}

/// A failure as one process tells it to another: an object with the key "failure".
nlohmann::ordered_json to_json_object(const Failure& failure);
/// Returns its text. A path in a sentence need not be UTF-8, as JSON is: what is not is replaced.
std::string to_json(const Failure& failure);
/// Throws what nlohmann's library throws where the object is something else.
Failure failure_from_json(const nlohmann::ordered_json& json);

}  // namespace tandem::studies
