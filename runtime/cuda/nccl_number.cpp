#include "runtime/cuda/nccl_number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tandem {
namespace {

constexpr int mantissa_bits_f32 = 23, mantissa_bits_bf16 = 7, mantissa_bits_f16 = 10;
constexpr std::uint32_t bias_f32 = 127, bias_f16 = 15;

/// Drops the lower bits, rounding to nearest, ties to even.
std::uint32_t rounded_off(std::uint32_t bits, int dropped) {
  const std::uint32_t half = 1U << (dropped - 1);
  return (bits + half - 1 + ((bits >> dropped) & 1U)) >> dropped;
}

double decode_f16(std::uint32_t bits) {
  constexpr std::uint32_t ones = 0x1F, implied = 1U << mantissa_bits_f16;
  const double sign = (bits >> 15 & 1U) != 0 ? -1 : 1;
  const std::uint32_t exponent = bits >> mantissa_bits_f16 & ones, mantissa = bits & (implied - 1);
  if (exponent == ones) return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  const int shift = static_cast<int>(std::max(exponent, 1U)) - static_cast<int>(bias_f16) - mantissa_bits_f16;
  return sign * std::ldexp(exponent == 0 ? mantissa : mantissa + implied, shift);
}

}  // namespace

std::uint32_t encode(NcclType type, float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  switch (type) {
    case NcclType::f32:
      return bits;
    case NcclType::bf16:
      return rounded_off(bits, mantissa_bits_f32 - mantissa_bits_bf16);
    case NcclType::f16:
      if (number == 0) return 0;
      return rounded_off(bits - ((bias_f32 - bias_f16) << mantissa_bits_f32), mantissa_bits_f32 - mantissa_bits_f16);
    case NcclType::u8:
    case NcclType::i32:
      return static_cast<std::uint32_t>(number);
  }
  return 0;
}

double decode(NcclType type, const std::byte* from) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, from, bytes_of(type));
  switch (type) {
    case NcclType::f32:
      return std::bit_cast<float>(bits);
    case NcclType::bf16:
      return std::bit_cast<float>(bits << (mantissa_bits_f32 - mantissa_bits_bf16));
    case NcclType::f16:
      return decode_f16(bits);
    case NcclType::u8:
      return bits;
    case NcclType::i32:
      return std::bit_cast<std::int32_t>(bits);
  }
  return 0;
}

double rounding_of(NcclType type) {
  switch (type) {
    case NcclType::f32:
      return std::ldexp(1, -mantissa_bits_f32 - 1);
    case NcclType::bf16:
      return std::ldexp(1, -mantissa_bits_bf16 - 1);
    case NcclType::f16:
      return std::ldexp(1, -mantissa_bits_f16 - 1);
    case NcclType::u8:
    case NcclType::i32:
      return 0;
  }
  return 0;
}

}  // namespace tandem
