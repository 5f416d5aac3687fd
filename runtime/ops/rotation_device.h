#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <stdexcept>

#include "runtime/cuda/module/device.h"
#include "runtime/ops/attributes.h"
#include "runtime/ops/documents_device.h"
#include "runtime/ops/rotation.h"

namespace tandem {

/// The rotations of rotation.h for kernels: a block computes those of its position and shares them. Angles are exact to double
/// precision, as fp32 has no digits left for the angle of a late position.
struct RotationTable {
  static constexpr int most_pairs = 256;

  double frequencies[most_pairs];  ///< turns per position
  int pairs = 0;                   ///< 0: nothing turns
  std::int32_t starts[2] = {}, first_length = 0;
  float direction = 1;  ///< -1: back
  PlaceTable places;    ///< of documents, each of which counts from 0

  RotationTable() = default;
  /// Without documents. Throws std::logic_error when the head is too wide.
  RotationTable(std::int64_t dim, float base, const Positions& positions, Direction turn, const YarnAttributes& yarn = {})
      : pairs(static_cast<int>(dim / 2)),
        starts{positions.start[0], positions.start[1]},
        first_length(positions.length[0]),
        direction(turn == Direction::forward ? 1.0F : -1.0F) {
    if (dim / 2 > most_pairs) throw std::logic_error("a rotated head has at most 512 elements");
    constexpr double radians = 2 * std::numbers::pi_v<double>;  // of a turn
    for (int i = 0; i < pairs; ++i) frequencies[i] = radians_per_position(i, dim, base, yarn) / radians;
  }

  /// cos and sin by pair, of a row of tokens, which lie [positions][batch]. All threads of the block call it, then wait for each
  /// other.
  TANDEM_DEVICE void compute(std::int64_t row, int batch, float* cos_of, float* sin_of) const {
    const std::int64_t position = position_of(row / batch, static_cast<int>(row % batch));
    for (int i = static_cast<int>(threadIdx.x); i < pairs; i += static_cast<int>(blockDim.x)) {
      const double turns = static_cast<double>(position) * frequencies[i];
      const auto half_turns = static_cast<float>(2 * (turns - rint(turns)));
      cos_of[i] = cospif(half_turns);
      sin_of[i] = direction * sinpif(half_turns);
    }
  }

 private:
  TANDEM_DEVICE std::int64_t position_of(std::int64_t index, int sequence) const {
    if (places.places != nullptr) return places.at(sequence, static_cast<int>(index)).token;
    return index < first_length ? starts[0] + index : starts[1] + index - first_length;
  }
};

/// Turns `n` pairs, of which `low` and `high` are the first and second elements; their cos and sin lie aligned for vectors.
template <int n>
TANDEM_DEVICE void turn(float (&low)[n], float (&high)[n], const float* cos_of, const float* sin_of) {
  float cosines[n], sines[n];
  load(cos_of, cosines);
  load(sin_of, sines);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const float a = low[i], b = high[i];
    low[i] = a * cosines[i] - b * sines[i];
    high[i] = b * cosines[i] + a * sines[i];
  }
}

}  // namespace tandem
