#pragma once

#include <string>
#include <vector>

#include "scenarios/checks/checks.h"
#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

// Objections to a scenario (checks/checks.h) and the places in the document that it was read from.

/// The place of the field that the user changed last: by an option, else in the scenario's own file, else in a preset; among
/// equals the first.
Place culprit(const YamlNode& document, const std::vector<std::string>& fields);

/// Throws InputError with the objection's sentence, at the culprit among its fields.
[[noreturn]] void refuse(const YamlNode& document, const Objection& objection);

/// What is unwise in the scenario (checks/warnings.h): sentences with their places.
std::vector<std::string> find_warnings(const Scenario& scenario, const YamlNode& document);

}  // namespace tandem::scenarios
