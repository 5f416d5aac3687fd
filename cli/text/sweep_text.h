#pragma once

#include <string>
#include <vector>

#include "cli/terminal/screen.h"
#include "studies/runner/results_database.h"

namespace tandem::cli {

/// A table for a person: the fields that vary, GPUs, step time, MFU and status. Long ones are cut. Where the screen is narrow,
/// fields go by the last part of their names as long as that tells them apart.
std::string to_table(const std::vector<std::string>& paths, const std::vector<PointRow>& rows, const Screen& screen = {});

}  // namespace tandem::cli
