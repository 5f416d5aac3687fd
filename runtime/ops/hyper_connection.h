#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Residual streams side by side in a row: x [s,b,n h] holds n of them (manifold-constrained hyper-connections: Xie et al. 2025,
// arXiv 2512.24880, section 4; HyperConnectionModule of Megatron-Core, mHC of DeepSeek-V4). By HyperAttributes. Each token has
// gates, made of all its streams: n that say how much of each stream a half of a layer reads, n that say how much of what it
// makes goes to each, and n x n by which the streams mix, whose rows and columns add up to 1. The product that they start from is
// gemm's.

/// hyper_expand: x [..,h]; y [..,n h]. Every stream is x.
CostFunction hyper_expand_cost;
HostKernel hyper_expand_host;

/// hyper_expand_backward: dy [..,n h]; dx [..,h]. The sum over the streams.
CostFunction hyper_expand_backward_cost;
HostKernel hyper_expand_backward_host;

/// hyper_gates: x [..,n h], logits [T,g], fp32, base; gates [T,g], fp32. g is n (n + 2), base 3 factors a and behind them a bias
/// for each gate; or with `iterations` 0 n, of which there is 1 factor. With u = logits / sqrt(mean(x^2) + epsilon_of_norm):
///
///   read_j  = sigmoid(a_0 u_j + bias_j) + epsilon                 j in [0, n)
///   write_j = 2 sigmoid(a_1 u_(n+j) + bias_(n+j))
///   mix     = Sinkhorn and Knopp's of M = softmax of each row of a_2 u + bias, row by row, + epsilon: the columns are divided by
///             their sums + epsilon, then iterations - 1 times the rows and the columns
CostFunction hyper_gates_cost;
HostKernel hyper_gates_host;

/// hyper_gates_backward: x, logits, base, dgates; dlogits, written; dx, dbase, updated. To dx it adds what goes through the norm.
CostFunction hyper_gates_backward_cost;
HostKernel hyper_gates_backward_host;

/// hyper_gather: x [..,n h], gates [T,g]; y [..,h]. y = the sum over j of read_j x_j.
CostFunction hyper_gather_cost;
HostKernel hyper_gather_host;

/// hyper_gather_backward: x, gates, dy; dx, dgates, updated. dx_j += read_j dy, dread_j += the sum over elements of dy x_j.
CostFunction hyper_gather_backward_cost;
HostKernel hyper_gather_backward_host;

/// hyper_merge: x [..,n h], gates [T,g], z [..,h]; y [..,n h]. y_i = write_i z + the sum over j of mix_ji x_j.
CostFunction hyper_merge_cost;
HostKernel hyper_merge_host;

/// hyper_merge_backward: x, gates, z, dy; dx, dz, dgates, all written, dread as 0.
CostFunction hyper_merge_backward_cost;
HostKernel hyper_merge_backward_host;

}  // namespace tandem
