#pragma once

#include "runtime/cuda/module/device.h"
#include "runtime/ops/hyper_sizes.h"

namespace tandem {

/// One token's gates and their gradients as HyperGates has them, by a warp: lane j holds what is of stream j, of the matrix row
/// j, so that an iteration of Sinkhorn and Knopp takes a few steps and not as many as the matrix has elements. All lanes of the
/// warp call all of it; those from `streams` on hold zeros. `most`: a power of two, not below the streams.
template <int most>
class HyperGatesOfLanes {
 public:
  float read = 0, write = 0, mix[most] = {};  ///< gates; after backward those before the iteration

  TANDEM_DEVICE HyperGatesOfLanes(const HyperSizes& sizes, int iterations, float epsilon)
      : n_(sizes),
        iterations_(sizes.mixes() ? iterations : 0),
        epsilon_(epsilon),
        lane_(static_cast<int>(threadIdx.x) % lanes_of_warp),
        there_(lane_ < sizes.streams) {}

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
#pragma unroll
      for (int to = 0; to < most; ++to) {
        if (to >= n_.streams) continue;
        const float divisor = sum_of_lanes(mix[to]) + epsilon_;
        of_columns_[i][to] = divisor;
        mix[to] *= 1 / divisor;
      }
      if (i + 1 == iterations_) break;
      float divisor = epsilon_;
#pragma unroll
      for (int to = 0; to < most; ++to) divisor += mix[to];
      of_rows_[i] = divisor;
      const float inverse = there_ ? 1 / divisor : 0.0F;
#pragma unroll
      for (int to = 0; to < most; ++to) mix[to] *= inverse;
    }
  }

  /// After `forward`: the gradients of the lane's gates become those of their arguments.
  TANDEM_DEVICE void backward(float& dread, float& dwrite, float (&dmix)[most]) {
    dread *= (read - epsilon_) * (1 - read + epsilon_);
    if (!n_.mixes()) return;
    dwrite *= write * (1 - write / 2);
    for (int i = iterations_ - 1; i >= 0; --i) {
      if (i + 1 < iterations_) {
        const float divisor = there_ ? of_rows_[i] : 1.0F, inverse = 1 / divisor;
        float mean = 0;
#pragma unroll
        for (int to = 0; to < most; ++to) mean += dmix[to] * mix[to];
#pragma unroll
        for (int to = 0; to < most; ++to) {
          dmix[to] = (dmix[to] - mean) * inverse;
          mix[to] *= divisor;
        }
      }
#pragma unroll
      for (int to = 0; to < most; ++to) {
        if (to >= n_.streams) continue;
        const float divisor = of_columns_[i][to], mean = sum_of_lanes(dmix[to] * mix[to]);
        dmix[to] = there_ ? (dmix[to] - mean) * (1 / divisor) : 0.0F;
        mix[to] *= divisor;
      }
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
  float of_columns_[HyperSizes::most_iterations][most], of_rows_[HyperSizes::most_iterations];

  static TANDEM_DEVICE float sigmoid(float x) { return 1 / (1 + expf(-x)); }

  /// Over the `most` lanes that lie together.
  static TANDEM_DEVICE float sum_of_lanes(float value) {
#pragma unroll
    for (int lanes = most / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(every_lane, value, lanes);
    return value;
  }

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
#pragma unroll
    for (int to = 0; to < most; ++to)
      if (to < n_.streams) mix[to] = mix[to] / sum + epsilon_;
  }
};

}  // namespace tandem
