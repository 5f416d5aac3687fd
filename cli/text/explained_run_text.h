#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/validate/explained_run.h"

namespace tandem::cli {

/// What `tandem validate --explain` prints.
std::string to_text(const ExplainedRun& explained, const Screen& screen);

}  // namespace tandem::cli
