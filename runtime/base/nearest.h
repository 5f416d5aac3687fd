#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/namespaces.h"

namespace tandem {

// What an error message offers instead, and how it prints what it found.

/// Counts the insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate that `name` was probably meant to be, at most one edit per three letters away and two at least, or an
/// empty text.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// Returns "; did you mean `x`?" where a candidate is near, "; expected one of: a, b, c" otherwise.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

/// Returns the closest divisors of `number` below and above `value`.
std::vector<std::int64_t> nearest_divisors(std::int64_t number, std::int64_t value);

/// Returns the closest positive multiples of `unit` below and above `value`.
std::vector<std::int64_t> nearest_multiples(std::int64_t unit, std::int64_t value);

std::string joined(std::span<const std::int64_t> values);
std::string joined(std::span<const std::string> values);

/// Returns 1048576 as 1,048,576.
std::string grouped(std::int64_t value);

/// Returns any text of the input between backquotes, printable and of bounded length.
std::string excerpt(std::string_view text);

}  // namespace tandem
