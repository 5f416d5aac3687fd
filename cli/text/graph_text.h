#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/recorded/graph_result.h"

namespace tandem::cli {

std::string to_text(const GraphResult& result, const Screen& screen);

}  // namespace tandem::cli
