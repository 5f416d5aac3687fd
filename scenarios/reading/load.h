#pragma once

#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Reads, completes and validates a scenario file. Presets are found by name, or in the file's own folder by path.
/// `overrides`: "path=value" with the value in YAML, applied before validation; their errors name the option instead of a file.
/// Throws InputError, also when the file cannot be read.
Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides);

/// Reads a scenario from text; `name` stands for the file in messages.
Scenario parse_scenario(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

}  // namespace tandem::scenarios
