#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace tandem {

/// Rotary embedding (Su et al. 2021, RoFormer, eq. 34) at one position: elements i and i + dim/2, the "rotate half" pairing of
/// Llama and Megatron, turn by the angle position * base^(-2i/dim).
struct Rotation {
  std::vector<float> cos, sin;

  Rotation(std::int32_t position, std::int64_t dim, float base) {
    for (std::int64_t i = 0; i < dim / 2; ++i) {
      const double angle = position * std::pow(double{base}, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
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
