#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/input_error.h"

namespace tandem::scenarios::shell {

/// What an expression asks of a shell.
struct ArithmeticScope {
  /// The text of a variable, or of an element of an array where there is a key; empty where it is not set.
  std::function<std::string(const std::string& name, const std::string& key)> read;
  std::function<void(const std::string& name, const std::string& key, std::int64_t value)> write;
};

/// Evaluates what stands in $((..)), in 64 bits that wrap around, as bash does. Throws InputError at `place` where it is no
/// expression, divides by zero, or refers to itself. Returns nothing, and gives the text with the mark, where a variable in it is
/// not known.
std::optional<std::int64_t> evaluate_arithmetic(std::string_view expression, const Place& place, const ArithmeticScope& scope,
                                                std::string& unknown);

}  // namespace tandem::scenarios::shell
