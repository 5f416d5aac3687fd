#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/topology/topology_report.h"

namespace tandem::cli {

std::string to_text(const TopologyReport& report, const Screen& screen = {});

}  // namespace tandem::cli
