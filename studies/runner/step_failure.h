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

  /// The sentence behind its place, as InputError::what() has it.
  std::string text() const;
};

/// Takes an InputError's `what()` apart: "file:line:column: sentence".
StepFailure wrong_input(const std::string& what);

/// A scenario that its reader refused with this InputError's `what()`.
StepFailure refusal(const std::string& what);

/// Describes the exception that is being handled, as an exit code and a sentence of one line. To be called in a catch block.
StepFailure failure_of_exception();

}  // namespace tandem::studies
