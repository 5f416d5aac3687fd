#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Top-k sparsification with error feedback (Aji and Heafield 2017, arXiv 1704.05021; Lin et al. 2018, arXiv 1712.01887): of a
// rank's gradients those of the largest magnitudes travel, with their places; the others wait for the next step.

/// top_k_select: x [n]; values [k], indices [k] (int32), residual [n], updated. Adds x to the residual, takes the k elements of
/// the largest magnitudes out of it, among equal ones those of the smaller index, and leaves 0 in their place. Indices ascend.
///
/// Bytes: those of the operands, the residual being read five times and written once by a radix select: three passes count the
/// magnitudes by 11, 10 and 10 of their bits, one the selected, the last writes them.
CostFunction top_k_select_cost;
HostKernel top_k_select_host;

/// sparse_sum: values [m, k], indices [m, k]; y [n]. y is 0, but for the values of the m selections, each added in its place in
/// the order of the selections, so that the sum is the same wherever it is made. Indices of one selection ascend.
CostFunction sparse_sum_cost;
HostKernel sparse_sum_host;

}  // namespace tandem
