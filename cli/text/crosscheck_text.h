#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/crosscheck/comparison.h"

namespace tandem::cli {

std::string to_text(const Comparison& comparison, const Screen& screen = {});

}  // namespace tandem::cli
