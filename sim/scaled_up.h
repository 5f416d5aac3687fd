#pragma once

#include "runtime/base/units.h"

namespace tandem::sim {

/// Returns ceil(bytes * numerator / denominator) without overflow: bytes reach 2^43 and numerators 2^18.
constexpr Bytes scaled_up(Bytes bytes, std::int64_t numerator, std::int64_t denominator) {
  const Bytes rest = bytes % denominator * numerator;
  return bytes / denominator * numerator + (rest + denominator - 1) / denominator;
}

}  // namespace tandem::sim
