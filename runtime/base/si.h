#pragma once

#include "runtime/base/units.h"

namespace tandem {

// Factors between what people write and the SI units of units.h.
constexpr double micro = 1e-6;
constexpr double giga = 1e9;
constexpr double bits_per_byte = 8;
constexpr double bytes_per_gbit = giga / bits_per_byte;
constexpr Seconds hour = 3600;
constexpr Seconds day = 24 * hour;

}  // namespace tandem
