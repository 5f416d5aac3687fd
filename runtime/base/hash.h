#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"

namespace tandem {

// The step and the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
TANDEM_HOST_DEVICE inline std::uint64_t hash(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

TANDEM_HOST_DEVICE inline std::uint64_t hash_of_place(std::uint64_t key, std::int64_t first, std::int64_t second) {
  return hash(hash(key ^ static_cast<std::uint64_t>(first)) ^ static_cast<std::uint64_t>(second));
}

}  // namespace tandem
