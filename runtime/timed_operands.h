#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/profile.h"

namespace tandem {

/// Returns, for each operand of a timed kernel, the int32 values that it holds before the kernel runs; empty for an operand that
/// may hold anything, such as a result. Token ids and slots must be such as the kernel can follow: ids spread over the rank's
/// vocabulary, slots as `route` deals them, or one after the other. Every run gets the same values.
std::vector<std::vector<std::int32_t>> integer_contents(const TimedKernel& kernel);

}  // namespace tandem
