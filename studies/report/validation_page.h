#pragma once

#include <string>

#include "studies/validate/validation.h"

namespace tandem::studies {

/// Returns the HTML report of measured runs beside their predictions; `title` is the table's name, `command` the command line
/// that makes it.
std::string validation_page(const std::string& title, const Validation& validation, const std::string& command);

}  // namespace tandem::studies
