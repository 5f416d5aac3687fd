#pragma once

#include <string>

#include "runtime/base/exit_code.h"
#include "runtime/base/input_error.h"

namespace tandem::studies {

/// Why a scenario has no result.
struct StepFailure {
  ExitCode code = ExitCode::failed;
  bool refused = false;  ///< nothing was simulated, as the scenario is wrong
  Place place = {};      ///< of wrong input
  std::string sentence;  ///< without the place

  /// Returns the sentence behind its place, as InputError::what() has it.
  std::string text() const { return placed(place, sentence); }
};

/// Returns the failure of a scenario that its reader refused.
StepFailure refusal(const InputError& error);

/// Describes the exception that is being handled, as an exit code and a sentence of one line. To be called in a catch block.
StepFailure failure_of_exception();

}  // namespace tandem::studies
