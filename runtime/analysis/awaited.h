#pragma once

#include "runtime/analysis/predecessors.h"

namespace tandem {

/// Returns what tasks wait for that may be exposed on their ranks: communications, and what the host computes.
Predecessors awaited_by(const Dag& dag);

}  // namespace tandem
