#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/validate/validation.h"

namespace tandem::cli {

std::string to_text(const Validation& validation, const Screen& screen = {});

}  // namespace tandem::cli
