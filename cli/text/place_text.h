#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/place/placement_result.h"

namespace tandem::cli {

std::string to_text(const PlacementResult& result, const Screen& screen = {});

}  // namespace tandem::cli
