#pragma once

#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Returns the names of the functions of a Python file that return something, in their order.
std::vector<std::string> python_functions(const std::string& text, const std::string& file);

/// Follows what a function does without running it: assignments to names and fields, calls with keywords, of classes and of
/// functions of the same file, literals, lists, arithmetic. What it cannot follow becomes a text of its own words. Throws
/// InputError with the place for Python that it cannot read.
YamlNode evaluate_python_function(const std::string& text, const std::string& file, const std::string& function);

}  // namespace tandem::scenarios
