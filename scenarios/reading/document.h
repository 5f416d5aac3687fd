#pragma once

#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// The steps of `parse_scenario`, for who lays changes over a scenario between them (overlay.h, presets.h):
// tidy_names, apply_override.., resolve_presets, read_document.

/// Gives the fields of a scenario that was just parsed the names that the other steps expect. Throws InputError unless it is a
/// mapping.
void tidy_names(YamlNode& document);

/// Gives a scenario that has no name this one.
void give_name(YamlNode& document, const std::string& name);

/// Returns the document of a scenario's file: with its names tidied, `overrides` ("path=value") applied, and presets filled in,
/// which are found by name or in the file's own folder by path. Throws InputError.
YamlNode load_document(const std::string& path, const std::vector<std::string>& overrides);
/// Returns the document of a scenario's text; `name` stands for the file.
YamlNode parse_document(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

/// Reads and validates a scenario whose presets are filled in. `default_name` stands in where it has none. Throws InputError.
Scenario read_document(const YamlNode& document, const std::string& default_name);

/// Reads a scenario and fills in what follows from the rest, without asking whether it can be lowered: for whoever shows the
/// fields of one that is refused. Throws InputError where a field cannot be read.
Scenario read_unchecked(const YamlNode& document, const std::string& default_name);

/// Returns all that `read_document` would refuse, as far as one thing can be checked in spite of another: the first of each kind
/// of check, in the order of the checks. Empty where the scenario is read.
std::vector<InputError> refusals_of(const YamlNode& document, const std::string& default_name);

/// Returns the text between YAML's double quotes, in which it reads as the same text whatever it holds.
std::string quoted_yaml(const std::string& text);

/// Returns the document as one line of YAML that parses to the same values. Fields are in alphabetical order, so that the same
/// values give the same text.
std::string to_yaml(const YamlNode& document);

}  // namespace tandem::scenarios
