#pragma once

#include <string>
#include <vector>

#include "studies/runner/results_database.h"

namespace tandem::studies {

/// The page of a study: its points, those that are done or do not fit with their results. `command` is the command line that
/// makes it.
std::string study_page(const std::string& name, const std::vector<PointRow>& rows, const std::string& command);

}  // namespace tandem::studies
