#pragma once

#include <string>
#include <vector>

#include "studies/runner/results_database.h"

namespace tandem::studies {

/// Returns the page of a study: all its points, with results of those that are done or do not fit. `command` is the command line
/// that makes the page.
std::string study_page(const std::string& name, const std::vector<PointRow>& rows, const std::string& command);

}  // namespace tandem::studies
