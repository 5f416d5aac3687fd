#pragma once

#include <string>
#include <vector>

#include "studies/runner/results_database.h"

namespace tandem::studies {

/// Returns the rows as comma-separated values (RFC 4180, lines end in LF): the fields that vary, every key of the results that is
/// no list, and how each point ended. `paths` are the fields that vary. The first line names the columns as the database does.
std::string to_csv(const std::vector<std::string>& paths, const std::vector<PointRow>& rows);

}  // namespace tandem::studies
