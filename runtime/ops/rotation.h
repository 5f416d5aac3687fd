#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "runtime/ops/attributes.h"

namespace tandem {

/// Radians that pair i of `dim` elements turns by from position to position: base^(-2i/dim). YaRN (Peng et al. 2023, arXiv
/// 2309.00071, section 3.2) divides that by its factor for pairs that turn less than beta_slow times in the original positions,
/// not for those that turn more than beta_fast times, and in part between them, by a ramp over the pairs' numbers whose ends are
/// whole numbers (precompute_freqs_cis of DeepSeek's inference/model.py). Neither queries nor keys are scaled beside it.
inline double radians_per_position(std::int64_t i, std::int64_t dim, float base, const YarnAttributes& yarn) {
  const double plain = std::pow(double{base}, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
  if (yarn.factor == 1.0F) return plain;
  const auto width = static_cast<double>(dim);
  const auto pair_of_turns = [&](double turns) {
    return width * std::log(double{yarn.original} / (turns * 2 * std::numbers::pi)) / (2 * std::log(double{base}));
  };
  const double low = std::max(std::floor(pair_of_turns(yarn.beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair_of_turns(yarn.beta_slow)), width - 1);
  const double ramp = (static_cast<double>(i) - low) / (high == low ? 0.001 : high - low);
  const double stretched = std::clamp(ramp, 0.0, 1.0);
  return plain * (1 - stretched + stretched / double{yarn.factor});
}

/// Rotary embedding (Su et al. 2021, RoFormer, eq. 34) at one position: elements i and i + dim/2, the "rotate half" pairing of
/// Llama and Megatron, turn by the angle position * radians_per_position.
struct Rotation {
  std::vector<float> cos, sin;

  Rotation(std::int32_t position, std::int64_t dim, float base, const YarnAttributes& yarn = {}) {
    for (std::int64_t i = 0; i < dim / 2; ++i) {
      const double angle = position * radians_per_position(i, dim, base, yarn);
      cos.push_back(static_cast<float>(std::cos(angle)));
      sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
};

enum class Direction {
  forward,
  backward
};

/// Turns the `dim` elements at `in`, back when backward. `in` may be `out`.
inline void rotate(const float* in, float* out, const Rotation& rotation, Direction direction) {
  const auto half = static_cast<std::int64_t>(rotation.cos.size());
  const float sign = direction == Direction::forward ? 1.0F : -1.0F;
  for (std::int64_t i = 0; i < half; ++i) {
    const float cos = rotation.cos[static_cast<std::size_t>(i)], sin = sign * rotation.sin[static_cast<std::size_t>(i)];
    const float first = in[i], second = in[i + half];
    out[i] = first * cos - second * sin;
    out[i + half] = second * cos + first * sin;
  }
}

}  // namespace tandem
