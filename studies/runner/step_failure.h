#pragma once

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

}  // namespace tandem::studies
