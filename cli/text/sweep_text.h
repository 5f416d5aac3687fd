#pragma once

#include <string>
#include <vector>

#include "cli/terminal/screen.h"
#include "studies/runner/results_database.h"

namespace tandem::cli {

/// A table for a person: the fields that vary, GPUs, step time, MFU and status. Long values are cut. Where the screen is narrow,
/// fields go by the last part of their names as long as that tells them apart.
std::string to_table(const std::vector<std::string>& paths, const std::vector<PointRow>& rows, const Screen& screen = {});

/// Says why points of a study are no scenarios, a line each, for the first 20.
std::string refusals_text(const std::vector<std::string>& sentences);

/// "40 points, 38 done, 2 oom; 12 of them from before; in study.sqlite", as a line. `kept`: how many were in the database before.
std::string summary_text(const std::vector<PointRow>& rows, std::size_t kept, const std::string& file);

}  // namespace tandem::cli
