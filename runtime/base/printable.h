#pragma once

#include <string>

#include "runtime/base/namespaces.h"

namespace tandem {

/// Returns the text with '?' for each control character: a path or name of the input may hold any byte, but must neither break
/// a line nor steer the terminal.
std::string printable(std::string text);

}  // namespace tandem
