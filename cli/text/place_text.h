#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/place/placement_report.h"

namespace tandem::cli {

std::string to_text(const PlacementReport& report, const Screen& screen = {});

}  // namespace tandem::cli
