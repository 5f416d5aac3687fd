#pragma once

#include <string>
#include <vector>

#include "studies/runner/results_database.h"
#include "cli/terminal/screen.h"

namespace tandem {

/// A table for a person: the fields that vary, GPUs, step time, MFU and status. Long ones are cut. Where the screen is narrow,
/// fields go by the last part of their names as long as that tells them apart.
std::string to_table(const std::vector<std::string>& paths, const std::vector<PointRow>& rows, const Screen& screen = {});

/// Comma-separated values (RFC 4180, lines end in LF): the fields that vary, every key of the results that is no list, and how
/// each point ended. The first line names the columns as the database does.
std::string to_csv(const std::vector<std::string>& paths, const std::vector<PointRow>& rows);

}  // namespace tandem
