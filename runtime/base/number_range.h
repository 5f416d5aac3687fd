#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/input_error.h"
#include "runtime/base/namespaces.h"

namespace tandem {

/// Whole numbers from `first` to `last`.
struct NumberRange {
  std::int64_t first = 0, last = 0;
};

/// Reads an item of a list of numbers, "7" or "3-8". Throws InputError at `place` where the item is neither, saying what was
/// `expected`, and where a range ends before it begins.
NumberRange parse_range(std::string_view item, const Place& place, const std::string& expected);

}  // namespace tandem
