#pragma once

#include <string>

#include "studies/diff/difference.h"

namespace tandem::studies {

/// Returns the page of what changed from one result to another. `command` is the command line that makes it.
std::string diff_page(const ResultDifference& difference, const std::string& command);

}  // namespace tandem::studies
