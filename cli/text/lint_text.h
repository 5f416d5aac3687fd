#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/lint/finding.h"

namespace tandem::cli {

/// The findings, each with its place, its cost and its fix.
std::string to_text(const LintResult& report, const Screen& screen = {});

}  // namespace tandem::cli
