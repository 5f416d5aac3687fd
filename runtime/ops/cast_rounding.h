#pragma once

#include <cstdint>
#include <stdexcept>

#include "runtime/base/dtype.h"
#include "runtime/base/hash.h"
#include "runtime/ops/attributes.h"
#include "runtime/ops/narrow.h"

namespace tandem {

// What cast.h says of scales, rounding and transforms, as hosts and GPUs compute it: the same numbers to the last bit.

inline NarrowFormat format_of(NarrowType type) {
  switch (type) {
    case NarrowType::e4m3:
      return e4m3_format;
    case NarrowType::e5m2:
      return e5m2_format;
    case NarrowType::e2m1:
      return e2m1_format;
    case NarrowType::none:
      break;
  }
  throw std::logic_error("cast rounds to no type");
}

/// Rows and columns of a block that shares a scale; 0: all of the tensor.
struct BlockShape {
  std::int64_t rows = 0, columns = 0;
};

inline BlockShape block_of(Scaling scaling, bool by_column) {
  const auto along_depth = [=](std::int64_t size) { return by_column ? BlockShape{size, 1} : BlockShape{1, size}; };
  switch (scaling) {
    case Scaling::none:
    case Scaling::tensor:
      break;
    case Scaling::blocks_128:
      return along_depth(128);
    case Scaling::blocks_32:
      return along_depth(32);
    case Scaling::blocks_16:
      return along_depth(16);
    case Scaling::squares_128:
      return {128, 128};
    case Scaling::squares_16:
      return {16, 16};
  }
  return {};
}

/// How the numbers of one output are rounded.
struct NarrowRounding {
  NarrowFormat format;
  Scaling scaling = Scaling::none;
  bool stochastic = false;
  std::uint64_t key = 0;

  NarrowRounding(const CastAttributes& attributes, bool by_column)
      : format(format_of(attributes.to)),
        scaling(attributes.scaling),
        stochastic(attributes.stochastic),
        key(hash(static_cast<std::uint64_t>(static_cast<std::uint32_t>(attributes.seed)) << 1U | (by_column ? 1U : 0U))) {}

  /// Returns the scale of a block whose largest magnitude is `largest`, in a tensor whose largest is `of_tensor`.
  TANDEM_HOST_DEVICE float scale_of(float largest, float of_tensor) const {
    if (!(largest > 0)) return 1;
    switch (scaling) {
      case Scaling::none:
        break;
      case Scaling::tensor:
        return largest / format.largest;
      case Scaling::blocks_128:
      case Scaling::squares_128:
      case Scaling::blocks_32:
        return power_not_below(largest / format.largest);
      case Scaling::blocks_16:
      case Scaling::squares_16: {
        const float global = of_tensor / (format.largest * 448.0F);
        const float block = to_nearest(scale_format(), largest / format.largest / global);
        return block > 0 ? block * global : 1;
      }
    }
    return 1;
  }

  /// Returns the number that stands for x.
  TANDEM_HOST_DEVICE float rounded(float x, float scale) const {
    const float scaled = x / scale;
    if (!stochastic) return scale * to_nearest(format, scaled);
    return scale * to_either(format, scaled, static_cast<std::uint32_t>(hash(key ^ bits_of(x)) >> 32U));
  }

 private:
  /// e4m3, of NVFP4's scales.
  TANDEM_HOST_DEVICE static NarrowFormat scale_format() { return {3, -6, 448.0F}; }

  TANDEM_HOST_DEVICE static std::uint32_t bits_of(float x) {
    union {
      float number;
      std::uint32_t bits;
    } both{x};
    return both.bits;
  }
};

inline constexpr int transformed_rows = 16;  ///< that a Hadamard matrix mixes

/// Multiplies 16 numbers by H16 D / 4. The signs of D are drawn once: TE keeps them for all steps, too.
TANDEM_HOST_DEVICE inline void transform(float (&values)[transformed_rows]) {
  constexpr std::uint32_t signs = 0xB5E1U;
  for (int i = 0; i < transformed_rows; ++i)
    if ((signs >> static_cast<unsigned>(i) & 1U) != 0) values[i] = -values[i];
  for (int half = 1; half < transformed_rows; half *= 2) {
    for (int i = 0; i < transformed_rows; ++i) {
      if ((i & half) != 0) continue;
      const float a = values[i], b = values[i + half];
      values[i] = a + b;
      values[i + half] = a - b;
    }
  }
  for (int i = 0; i < transformed_rows; ++i) values[i] /= 4;
}

}  // namespace tandem
