#pragma once

#include <cstdint>

namespace tandem::topology {

/// Splitmix64's finaliser: equal inputs give equal outputs on every machine, and one changed bit changes half of the others.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace tandem::topology
