#pragma once

#include <stdexcept>
#include <string>

#include "runtime/base/namespaces.h"

namespace tandem {

/// The place where an input is wrong. Line and column count from 1; 0 means the file as a whole.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string text() const;  ///< "file:line:column", shorter where line or column is unknown
};

/// Wrong input: exit code 2. `what()` is one sentence: place, what was found, what was expected, the nearest valid name or value.
class InputError : public std::runtime_error {
 public:
  InputError(const Place& place, const std::string& sentence);
};

}  // namespace tandem
