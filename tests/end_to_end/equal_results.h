#pragma once

#include <string>

#include "studies/step/step_result.h"

namespace tandem::studies {

/// How much may differ, relatively, what hangs on the order of things that happen at once.
struct OrderAtOnce {
  double allocator = 1e-9;    ///< what PyTorch's keeps, where rounding decides
  double upper_bound = 1e-9;  ///< where the numbers of tasks do
};

/// Expects the results to be the same but for how they were found: numbers to within 1e-9, or 1e-12 of what is nothing, but for
/// what hangs on an order; all else exactly.
void expect_equal_results(const StepResult& a, const StepResult& b, const std::string& what, const OrderAtOnce& order = {});

}  // namespace tandem::studies
