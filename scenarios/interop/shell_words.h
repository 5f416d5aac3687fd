#pragma once

#include <string>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::scenarios {

struct ShellWord {
  std::string text;
  Place place;
};

/// Returns the words of a shell script, as far as a command line needs it: comments, quotes, lines continued by a backslash, the
/// brackets of arrays as space, and variables that were set before by NAME=value, whose values stand in for $NAME and ${NAME}.
/// What refers to other variables stays as written.
std::vector<ShellWord> shell_words(const std::string& text, const std::string& file);

}  // namespace tandem::scenarios
