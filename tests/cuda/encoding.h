#pragma once

#include <cstddef>
#include <vector>

#include "runtime/base/dtype.h"

namespace tandem::studies {

/// Numbers as their bytes in a floating-point type, rounded to nearest; fp8 (e4m3) holds number / scale.
std::vector<std::byte> encode(const std::vector<float>& numbers, DType type, float scale);
std::vector<float> decode(const std::vector<std::byte>& bytes, DType type, float scale);

/// The largest relative error of rounding once to the type, and the largest absolute one of the smallest numbers.
struct Rounding {
  double relative = 0, absolute = 0;
};
Rounding rounding_of(DType type, float scale);

}  // namespace tandem::studies
