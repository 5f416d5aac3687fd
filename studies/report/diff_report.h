#pragma once

#include <string>

#include "studies/diff/difference.h"

namespace tandem::studies {

/// The page of what changed from one result to another.
std::string diff_page(const ResultDifference& difference);

}  // namespace tandem::studies
