#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/host_device.h"

namespace tandem {

/// A number format of a byte or less: a sign, an exponent and a mantissa, with subnormal numbers. What overflows becomes the
/// largest number, as conversions of GPUs saturate.
struct NarrowFormat {
  int mantissa_bits = 0;
  int least_exponent = 0;  ///< of a normal number
  float largest = 0;
};

// Micikevicius et al. 2022 (arXiv 2209.05433), table 1; e2m1: OCP Microscaling Formats 1.0, section 5.3.3.
inline constexpr NarrowFormat e4m3_format{3, -6, 448.0F}, e5m2_format{2, -14, 57344.0F}, e2m1_format{1, 0, 6.0F};

/// Returns the distance of the format's numbers around x, which is a power of two.
TANDEM_HOST_DEVICE inline float spacing_at(const NarrowFormat& format, float x) {
  int exponent = format.least_exponent;
  if (std::fabs(x) >= std::ldexp(1.0F, format.least_exponent)) exponent = std::ilogb(x);
  return std::ldexp(1.0F, exponent - format.mantissa_bits);
}

TANDEM_HOST_DEVICE inline float saturated(const NarrowFormat& format, float x) {
  if (x > format.largest) return format.largest;
  return x < -format.largest ? -format.largest : x;  // NaN remains
}

/// Returns the nearest number of the format; of two equally near ones that with an even mantissa.
TANDEM_HOST_DEVICE inline float to_nearest(const NarrowFormat& format, float x) {
  const float at = saturated(format, x);
  const float spacing = spacing_at(format, at);
  return std::rint(at / spacing) * spacing;
}

/// Returns the number of the format below x or above it, so that the mean over all `random`, 32 bits, is x.
TANDEM_HOST_DEVICE inline float to_either(const NarrowFormat& format, float x, std::uint32_t random) {
  const float at = saturated(format, x);
  const float spacing = spacing_at(format, at);
  const float below = std::floor(at / spacing);
  const bool up = (at / spacing - below) * 0x1p32F > static_cast<float>(random);
  return (up ? below + 1 : below) * spacing;
}

/// Returns the power of two that is not below x > 0: what e8m0 stores of a scale, so that nothing overflows.
TANDEM_HOST_DEVICE inline float power_not_below(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);  // in [0.5, 1)
  return std::ldexp(1.0F, fraction == 0.5F ? exponent - 1 : exponent);
}

}  // namespace tandem
