#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/profile.h"

namespace tandem {

/// What the int32 operands of a timed kernel hold before it runs, by operand; empty for those that hold anything, such as
/// results. Token ids and slots must be such as the kernel can follow: ids spread over the rank's vocabulary, slots as `route`
/// deals them, or one after the other. The same in every run.
std::vector<std::vector<std::int32_t>> integer_contents(const TimedKernel& kernel);

}  // namespace tandem
