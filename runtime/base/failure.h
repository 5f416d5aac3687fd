#pragma once

#include <string>

#include "runtime/base/exit_code.h"
#include "runtime/base/input_error.h"
#include "runtime/base/namespaces.h"

namespace tandem {

/// Why a piece of work has no result.
struct Failure {
  ExitCode code = ExitCode::failed;
  Place place = {};      ///< of wrong input
  std::string sentence;  ///< without the place

  /// Returns the sentence behind its place, as InputError::what() has it.
  std::string text() const { return placed(place, sentence); }
};

/// Describes the exception that is being handled, in printable text of one line. To be called in a catch block.
Failure failure_of_exception();

}  // namespace tandem
