#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Keys that stand for `ratio` positions each (DeepSeek-V4, section 2.3; DeepseekV4CSACompressor and DeepseekV4HCACompressor of
// transformers, the fused compressor of cuDNN's front end): for every element a mean of the window's values, weighted by the
// softmax of its scores and of a bias for each place in the window. Where windows `overlap`, rows are two keys wide: a window has
// the second half of its own positions, and the first half of those before, whose number is the same; the first window has none.

/// compress_keys: c [s,b,w], z [s,b,w], bias [ratio,w]; k [s/ratio,b,d], by CompressAttributes; w is d, or 2 d with `overlap`.
///
///   k = sum_j p_j c_j,  p = softmax_j (z_j + bias_j)      of every element by itself, j over the window
CostFunction compress_keys_cost;
HostKernel compress_keys_host;

/// compress_keys_backward: c, z, bias, k, dk; dc, dz, both written, dbias, updated.
///
///   dc_j = p_j dk,  dz_j = p_j (c_j - k) dk,  dbias_j += the sum over windows of dz_j;   0 where no window reads
CostFunction compress_keys_backward_cost;
HostKernel compress_keys_backward_host;

}  // namespace tandem
