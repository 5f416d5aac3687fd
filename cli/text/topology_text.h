#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/topology/topology_summary.h"

namespace tandem::cli {

std::string to_text(const TopologySummary& summary, const Screen& screen = {});

}  // namespace tandem::cli
