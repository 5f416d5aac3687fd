#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/cuda/nccl_call.h"

namespace tandem {

// Numbers as NCCL's types hold them, without CUDA's headers.

constexpr std::size_t bytes_of(NcclType type) {
  constexpr std::array<std::size_t, 5> bytes{4, 2, 2, 1, 4};
  return bytes[static_cast<std::size_t>(type)];
}

/// The number's bits, in the lowest `bytes_of(type)` bytes. Rounded to nearest, ties to even; whole numbers lose their fraction.
/// Of zero and what lies between 2^-14 and 255, which is normal in all types.
std::uint32_t encode(NcclType type, float number);

/// Decodes the number that begins at `from`, which need not be aligned. NaN and infinities are numbers, too.
double decode(NcclType type, const std::byte* from);

/// The largest relative error of rounding once to the type, half a unit in the last place of 1; 0 for whole numbers.
double rounding_of(NcclType type);

}  // namespace tandem
