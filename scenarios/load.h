#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/scenario.h"

namespace tandem {

/// Where an input is wrong. Line and column count from 1; 0 means the file as a whole.
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

/// Reads, completes and validates a scenario file. Presets are found by name, or in the file's own folder by path.
/// `overrides`: "path=value" with the value in YAML, applied before validation; their errors name the option instead of a file.
/// Throws InputError, also when the file cannot be read.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides);

/// The same from text; `name` stands for the file in messages.
Scenario parse_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

}  // namespace tandem
