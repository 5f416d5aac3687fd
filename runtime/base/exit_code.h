#pragma once

#include "runtime/base/namespaces.h"

namespace tandem {

/// The exit codes of every subcommand and program, and what a failed step is known by.
enum class ExitCode : int {
  done = 0,
  failed = 1,       ///< hardware, I/O
  wrong_input = 2,  ///< see InputError
  does_not_fit = 3  ///< in the GPUs' memory
};

}  // namespace tandem
