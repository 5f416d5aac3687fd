#pragma once

#include "runtime/cuda/module/device.h"
#include "runtime/ops/hyper_sizes.h"

namespace tandem {

/// What a token's matrix was divided by, in shared memory: an array that is indexed in a loop is no registers, and the local
/// memory of a multiprocessor's warps is more than what rows in shared memory leave of its L1 cache.
template <int most>
struct SinkhornDivisors {
  float of_columns[HyperSizes::most_iterations][most], of_rows[HyperSizes::most_iterations][most];
};

/// 1 / the root of the mean of squares of a row, which the block reads by vectors where `vector` is not 1.
template <int vector, typename Element>
TANDEM_DEVICE float inverse_root_mean_square(const Element* row, int count, float epsilon) {
  float squares = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x) * vector; i < count; i += static_cast<int>(blockDim.x) * vector) {
    float values[vector];
    load(row + i, values);
#pragma unroll
    for (int j = 0; j < vector; ++j) squares += values[j] * values[j];
  }
  return 1 / sqrtf(block_sum(squares) / static_cast<float>(count) + epsilon);
}

/// Sums each value over the `lanes` (a power of two) that lie together; the sums' shuffles are under way at once.
template <int lanes, int count>
TANDEM_DEVICE void sums_of_lanes(float (&values)[count]) {
#pragma unroll
  for (int other = lanes / 2; other > 0; other /= 2)
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] += __shfl_xor_sync(every_lane, values[i], other);
}

/// One token's gates and their gradients as HyperGates has them, by a warp: lane j holds what is of stream j, of the matrix row
/// j, so that an iteration of Sinkhorn and Knopp takes a few steps and not as many as the matrix has elements. Nothing branches
/// in it, so that the columns' sums and reciprocals are under way at once. All lanes of the warp call all of it; those from
/// `streams` on hold zeros. `most`: a power of two, not below the streams.
template <int most>
class HyperGatesOfLanes {
 public:
  float read = 0, write = 0, mix[most] = {};  ///< gates; after backward those before the iteration

  /// `kept`: in shared memory, for a warp that calls `backward`; else null.
  TANDEM_DEVICE HyperGatesOfLanes(const HyperSizes& sizes, int iterations, float epsilon, SinkhornDivisors<most>* kept)
      : n_(sizes),
        iterations_(sizes.mixes() ? iterations : 0),
        epsilon_(epsilon),
        lane_(static_cast<int>(threadIdx.x) % lanes_of_warp),
        there_(lane_ < sizes.streams),
        kept_(kept) {}

  TANDEM_DEVICE bool there() const { return there_; }
  TANDEM_DEVICE int lane() const { return lane_; }

  /// argument(g) is a_g u_g + bias_g.
  template <typename Argument>
  TANDEM_DEVICE void forward(Argument argument) {
    if (there_) {
      read = sigmoid(argument(lane_)) + epsilon_;
      if (n_.mixes()) {
        write = 2 * sigmoid(argument(n_.write(lane_)));
        softmax(argument);
      }
    }
    for (int i = 0; i < iterations_; ++i) {
      alignas(widest_access) float divisors[most];
#pragma unroll
      for (int to = 0; to < most; ++to) divisors[to] = mix[to];
      sums_of_lanes<most>(divisors);
#pragma unroll
      for (int to = 0; to < most; ++to) {
        divisors[to] = there_ && to < n_.streams ? divisors[to] + epsilon_ : 1.0F;
        mix[to] *= divide_fast(1.0F, divisors[to]);
      }
      if (kept_ != nullptr && lane_ == 0) copy_aligned<most * 4>(kept_->of_columns[i], divisors);
      if (i + 1 == iterations_) break;
      float divisor = epsilon_;
#pragma unroll
      for (int to = 0; to < most; ++to) divisor += mix[to];
      divisor = there_ ? divisor : 1.0F;
      if (kept_ != nullptr && there_) kept_->of_rows[i][lane_] = divisor;
      const float inverse = divide_fast(1.0F, divisor);
#pragma unroll
      for (int to = 0; to < most; ++to) mix[to] *= inverse;
    }
    if (kept_ != nullptr) __syncwarp();
  }

  /// After `forward`: the gradients of the lane's gates become those of their arguments.
  TANDEM_DEVICE void backward(float& dread, float& dwrite, float (&dmix)[most]) {
    dread *= (read - epsilon_) * (1 - read + epsilon_);
    if (!n_.mixes()) return;
    dwrite *= write * (1 - write / 2);
    Divisors divisors = divisors_of(iterations_ - 1);
    for (int i = iterations_ - 1; i >= 0; --i) {
      const Divisors next = divisors_of(i == 0 ? 0 : i - 1);  // nothing waits for what was loaded an iteration ago
      float mean = 0, means[most];
#pragma unroll
      for (int to = 0; to < most; ++to) mean += dmix[to] * mix[to];
      if (i + 1 == iterations_) mean = 0;
#pragma unroll
      for (int to = 0; to < most; ++to) {
        dmix[to] = (dmix[to] - mean) * divisors.inverse_of_row;
        mix[to] *= divisors.of_row;
        means[to] = dmix[to] * mix[to];
      }
      sums_of_lanes<most>(means);
#pragma unroll
      for (int to = 0; to < most; ++to) {
        dmix[to] = there_ ? (dmix[to] - means[to]) * divisors.inverses_of_columns[to] : 0.0F;
        mix[to] *= divisors.of_columns[to];
      }
      divisors = next;
    }
    float mean = 0;
#pragma unroll
    for (int to = 0; to < most; ++to)
      if (to < n_.streams) mean += dmix[to] * (mix[to] - epsilon_);
#pragma unroll
    for (int to = 0; to < most; ++to) dmix[to] = (mix[to] - epsilon_) * (dmix[to] - mean);
  }

 private:
  HyperSizes n_;
  int iterations_;
  float epsilon_;
  int lane_;
  bool there_;
  SinkhornDivisors<most>* kept_;

  /// An iteration's, for the lane's row; the last iteration divides no rows.
  struct Divisors {
    float of_row, inverse_of_row;
    alignas(widest_access) float of_columns[most], inverses_of_columns[most];
  };
  TANDEM_DEVICE Divisors divisors_of(int i) const {
    Divisors result;
    copy_aligned<most * 4>(result.of_columns, kept_->of_columns[i]);
    result.of_row = there_ && i + 1 < iterations_ ? kept_->of_rows[i][lane_ % most] : 1.0F;
    result.inverse_of_row = divide_fast(1.0F, result.of_row);
#pragma unroll
    for (int to = 0; to < most; ++to) result.inverses_of_columns[to] = divide_fast(1.0F, result.of_columns[to]);
    return result;
  }

  static TANDEM_DEVICE float sigmoid(float x) { return divide_fast(1.0F, 1 + expf(-x)); }

  template <typename Argument>
  TANDEM_DEVICE void softmax(Argument argument) {
    float largest = argument(n_.mix(lane_, 0)), sum = 0;
#pragma unroll
    for (int to = 0; to < most; ++to) {
      if (to >= n_.streams) continue;
      mix[to] = argument(n_.mix(lane_, to));
      largest = fmaxf(largest, mix[to]);
    }
#pragma unroll
    for (int to = 0; to < most; ++to) {
      if (to >= n_.streams) continue;
      mix[to] = expf(mix[to] - largest);
      sum += mix[to];
    }
    const float inverse = divide_fast(1.0F, sum);
#pragma unroll
    for (int to = 0; to < most; ++to)
      if (to < n_.streams) mix[to] = mix[to] * inverse + epsilon_;
  }
};

}  // namespace tandem
