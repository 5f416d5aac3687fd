#pragma once

#include <chrono>

#include "runtime/base/units.h"

namespace tandem {

using Clock = std::chrono::steady_clock;

inline Seconds since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace tandem
