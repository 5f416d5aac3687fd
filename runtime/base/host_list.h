#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/namespaces.h"

namespace tandem {

/// Returns the names that a host list of Slurm stands for, in its order: "tux[0-3,12],login1" is tux0, tux1, tux2, tux3, tux12,
/// login1. Several brackets multiply, the last turning fastest ("rack[0-1]node[0-1]"); a number keeps the zeros that its range
/// begins with ("n[08-10]" is n08, n09, n10). Names may be separated by spaces, too.
///
/// Throws InputError at `place`: a bracket that is not closed or holds no numbers, a range that goes down, more than
/// 1,048,576 names.
std::vector<std::string> expand_host_list(std::string_view list, const Place& place);

/// Returns a host list that stands for the names in their order. Runs of names that differ in their last number alone, and count
/// up by one, become ranges.
std::string host_list_of(std::span<const std::string> names);

/// Orders names as people do: the numbers in them by value, so that n9 is before n10.
bool comes_before(std::string_view one, std::string_view other);

}  // namespace tandem
