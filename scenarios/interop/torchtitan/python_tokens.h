#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::scenarios {

struct PythonToken {
  enum class Kind : std::uint8_t {
    name,  ///< and keywords
    number,
    text,  ///< without its quotes
    symbol,
    newline,  ///< the end of a logical line
    indent,
    dedent,
    end
  };
  Kind kind = Kind::end;
  std::string text;
  Place place;
};

/// Splits Python into tokens as its reference has it under "Lexical analysis", comments left out. The last one is `end`. Throws
/// InputError for a text without its closing quote.
std::vector<PythonToken> python_tokens(const std::string& text, const std::string& file);

}  // namespace tandem::scenarios
