#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/diff/difference.h"

namespace tandem::cli {

/// The step time, what explains its change, and what lies below that.
std::string to_text(const ResultDifference& difference, const Screen& screen = {});

}  // namespace tandem::cli
