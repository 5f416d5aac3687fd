#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/units.h"

namespace tandem {

/// A block of a product that one multiprocessor computes at a time.
struct GemmTile {
  std::int32_t m = 0, n = 0;
  bool operator==(const GemmTile&) const = default;
};

/// Says how matrix products of one type run. `sim/gemm_cost.h` says what each number does.
struct GemmEfficiency {
  double rate = 0;              ///< share of `Device::peak`: of large products, or, where there are tiles, inside a tile
  double sustained = 1;         ///< share of the clock that is left in a training step, where power is short
  BytesPerSecond feed = 0;      ///< operands into one multiprocessor
  BytesPerSecond store = 0;     ///< results out of all of them
  Seconds launch = 0;           ///< fixed cost of one product
  Seconds split = 0;            ///< fixed cost of adding partial sums up
  Seconds on_stream = 0;        ///< what one of several streams adds to each of its products
  double block_scaled = 1;      ///< share of `rate` that products keep whose operands have a scale for each 32 elements (mxfp8)
  std::vector<GemmTile> tiles;  ///< those that the library chooses from; none: the rate is all that is known
  double assumed = 0;           ///< standard error of ln(speed) where no product of the type was measured
  bool operator==(const GemmEfficiency&) const = default;
};

/// The implementation that computes attention.
enum class AttentionKernel : std::uint8_t {
  unfused,  ///< products, softmax and dropout as kernels of their own, over all scores
  flash_1,
  flash_2,
  flash_3,
  cudnn
};
inline constexpr std::size_t attention_kernel_count = 5;
constexpr std::string_view name_of(AttentionKernel kernel) {
  constexpr std::array<std::string_view, attention_kernel_count> names{"unfused", "flash-1", "flash-2", "flash-3", "cudnn"};
  return names[static_cast<std::size_t>(kernel)];
}

/// The head dimensions for which rates of attention are stated.
inline constexpr std::array<double, 3> attention_head_dims{64, 128, 256};

/// Says how one pass of fused attention runs. `sim/attention_cost.h` says what each number does.
struct AttentionPass {
  std::array<double, 3> rate{};  ///< share of `Device::peak` inside a tile, by head dimension; 0: not known
  double causal = 1;             ///< share of that speed that a causal mask leaves
  Seconds tile = 0;              ///< fixed cost of a tile at head dimension 128
  bool operator==(const AttentionPass&) const = default;
};
struct AttentionEfficiency {
  AttentionPass forward, backward;
  bool operator==(const AttentionEfficiency&) const = default;
};

/// What a kernel reaches of the device's peaks. Data: `efficiency` in `scenarios/presets/gpus/`, each number with its source.
struct KernelEfficiency {
  std::array<GemmEfficiency, dtype_count> gemm{};
  bool tf32 = false;  ///< products of fp32 run on tensor cores as those of bf16 do, at half their rate
  AttentionKernel attention_kernel = AttentionKernel::flash_2;  ///< the one that is used
  std::array<AttentionEfficiency, attention_kernel_count> attention{};
  double attention_sustained = 1;  ///< share of the clock that is left to fused attention in a training step
  double spread = 0;               ///< standard deviation of healthy GPUs' speeds, as a share of the mean
  double unfused = 1;              ///< share of `memory` that softmax and dropout of unfused attention reach
  double permute = 1;              ///< share of `memory` that kernels reach which put rows into another order
  double cast = 1;                 ///< share of `memory` that casts to fp8 and fp4 reach
  /// Elements a second that one multiprocessor handles in PyTorch's kernels which load them one at a time, whatever their type.
  /// 0: not known, as many as the memory brings and takes in 16 bits.
  double element_rate = 0;
  double scan = 1;           ///< share of `memory`, and of the rate of products, that Triton's kernels of a state's scan reach
  double cross_entropy = 1;  ///< share of `memory` that the loss reaches, which goes row by row
  double attention_forward = 0;  ///< fraction of the peak, counting causal FLOPs, where no more is known
  double attention_backward = 0;
  double memory = 0;   ///< fraction of the memory bandwidth that kernels achieve
  Seconds launch = 0;  ///< fixed cost of a kernel that is no matrix product

  /// Returns whether the speed of this attention is known. Unfused attention is made of products and of kernels that move memory.
  bool states(AttentionKernel kernel) const {
    return kernel == AttentionKernel::unfused || attention[static_cast<std::size_t>(kernel)].forward.rate[0] > 0;
  }
};

}  // namespace tandem
