#pragma once

#include <array>
#include <cstdint>
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
  u8  ///< masks: 0 or 1
};
inline constexpr std::size_t dtype_count = 6;

constexpr Bytes size_of(DType type) {
  constexpr std::array<Bytes, dtype_count> bytes{4, 2, 2, 1, 4, 1};
  return bytes[static_cast<std::size_t>(type)];
}

constexpr std::string_view name_of(DType type) {
  constexpr std::array<std::string_view, dtype_count> names{"fp32", "bf16", "fp16", "fp8", "int32", "uint8"};
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
