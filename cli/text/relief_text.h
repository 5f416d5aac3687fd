#pragma once

#include <string>

#include "cli/terminal/page.h"
#include "studies/relief/relief.h"

namespace tandem::cli {

/// Adds what each lever does alone, and the plan that fits, or that none does and which is nearest.
void add_relief(Page& page, const ReliefResult& relief);

std::string to_text(const ReliefResult& relief, const Screen& screen = {});

}  // namespace tandem::cli
