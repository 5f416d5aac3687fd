#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "runtime/base/namespaces.h"
#include "runtime/base/units.h"

namespace tandem {

enum class DType : std::uint8_t {
  f32,
  bf16,
  f16,
  f8,
  i32,
  u8,  ///< masks: 0 or 1
  f4   ///< e2m1, two of them in a byte
};
inline constexpr std::size_t dtype_count = 7;

/// Returns the bytes of so many elements that lie one after the other.
constexpr Bytes size_of(DType type, std::int64_t elements) {
  constexpr std::array<std::int64_t, dtype_count> bits{32, 16, 16, 8, 32, 8, 4};
  return (elements * bits[static_cast<std::size_t>(type)] + 7) / 8;
}

/// Returns the bytes of one element. Throws std::logic_error where it has half a byte.
constexpr Bytes size_of(DType type) {
  if (type == DType::f4) throw std::logic_error("an element of fp4 is no whole byte");
  return size_of(type, 1);
}

/// Which elements of a tensor in fp8 or fp4 share a scale. Scales are part of the tensor's bytes.
enum class Scaling : std::uint8_t {
  none,
  tensor,       ///< all: one scale in fp32
  blocks_128,   ///< 128 along the depth of a product: fp32
  blocks_32,    ///< 32 along it: a power of two, e8m0 (OCP Microscaling Formats 1.0)
  blocks_16,    ///< 16 along it: e4m3, and one in fp32 for the tensor (NVFP4)
  squares_128,  ///< 128 x 128: fp32
  squares_16    ///< 16 x 16: as blocks_16, and stored for each 16 of them, as the products read it
};
inline constexpr std::size_t scaling_count = 7;

/// Returns the bytes of the scales of so many elements.
constexpr Bytes scale_bytes(Scaling scaling, std::int64_t elements) {
  const auto blocks = [elements](std::int64_t size) { return (elements + size - 1) / size; };
  switch (scaling) {
    case Scaling::none:
      break;
    case Scaling::tensor:
      return size_of(DType::f32);
    case Scaling::blocks_128:
      return blocks(128) * size_of(DType::f32);
    case Scaling::blocks_32:
      return blocks(32);
    case Scaling::blocks_16:
    case Scaling::squares_16:
      return blocks(16) + size_of(DType::f32);
    case Scaling::squares_128:
      return blocks(128 * 128) * size_of(DType::f32);
  }
  return 0;
}

constexpr std::string_view name_of(DType type) {
  constexpr std::array<std::string_view, dtype_count> names{"fp32", "bf16", "fp16", "fp8", "int32", "uint8", "fp4"};
  return names[static_cast<std::size_t>(type)];
}

/// Up to four dimensions, outermost first. Unused dimensions are 1, so that `elements()` needs no rank.
struct Shape {
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  std::uint8_t rank = 0;

  Shape() = default;
  template <typename... Ints>
  explicit constexpr Shape(Ints... d) : dims{static_cast<std::int64_t>(d)...}, rank(sizeof...(Ints)) {
    for (std::size_t i = sizeof...(Ints); i < 4; ++i) dims[i] = 1;
  }
  constexpr std::int64_t operator[](std::size_t i) const { return dims[i]; }
  constexpr std::int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  bool operator==(const Shape&) const = default;
};

}  // namespace tandem
