#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace tandem::cli {

/// Adds a required option that takes the name of a row of a registry of formats. Help lists each row's `name`, and `what` it is.
template <typename Format>
CLI::Option* add_format_option(CLI::App& command, const std::string& option, std::string& value,
                               std::span<const Format> formats) {
  std::string help;
  std::vector<std::string> names;
  for (const Format& format : formats) {
    names.emplace_back(format.name);
    if (!help.empty()) help += "; ";
    help.append(format.name).append(": ").append(format.what);
  }
  return command.add_option(option, value, help)->required()->check(CLI::IsMember(names));
}

}  // namespace tandem::cli
