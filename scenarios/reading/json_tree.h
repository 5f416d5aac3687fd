#pragma once

#include <string>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Parses a JSON text into the same tree that YAML gives, each value with its place; texts are `quoted`, numbers are as they are
/// written. The words Infinity, -Infinity and NaN, which Python writes and JSON lacks, become texts. Throws InputError for wrong
/// syntax, duplicate keys, nesting deeper than 32 and more than 20,000 values.
YamlNode parse_json(const std::string& text, const std::string& file);

}  // namespace tandem::scenarios
