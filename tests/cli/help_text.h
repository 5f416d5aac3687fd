#pragma once

#include <string>
#include <vector>

namespace tandem::cli {

// What a program's --help lists, in its order.

/// The names of subcommands.
std::vector<std::string> subcommands_in(const std::string& help);

/// The names of options: "-h" and "--help" are two.
std::vector<std::string> options_in(const std::string& help);

}  // namespace tandem::cli
