#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// causal_conv: x [s,b,W], weight [R,k] or [R,k+1]; y [s,b,C]. A depthwise convolution over the positions, then SiLU, of the
/// columns that CausalConvAttributes names; before the first position, and before that of each document, there are zeros (Mamba:
/// Gu & Dao 2023; Dao-AILab's causal_conv1d).
///
///   y_t = silu(bias + w_0 x_(t-k+1) + ... + w_(k-1) x_t)        for each channel with a row of the weight, k <= 8
CostFunction causal_conv_cost;
HostKernel causal_conv_host;

/// causal_conv_backward: x, weight, dy; dx [s,b,W], dweight. Of dx only the columns that were read are written, others are left
/// as they are; the gradient of the weight is added.
CostFunction causal_conv_backward_cost;
HostKernel causal_conv_backward_host;

inline constexpr std::int64_t most_taps = 8;

}  // namespace tandem
