#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// An RMSNorm of whole rows, of which each tensor-parallel rank has some columns, and its gate (MiniMax-Text-01: the norm of all
// heads of lightning attention, times the sigmoid of a projection; without gates, the norms of all heads' queries and keys of
// OLMo 2). With i over all `width` columns, here or not:
//
//   y = w n sigmoid(z),  n = x / sqrt(sum_i x_i^2 / width + epsilon)
//   g = w sigmoid(z) dy,  dx = (g - n sum_i (g_i n_i) / width) sqrt(..)^-1,  dz = dy w n sigmoid(z) (1 - sigmoid(z)),
//   dw += sum over rows of dy n sigmoid(z)
//
// Both sums are made by operations of their own, so that ranks can add them up in between. Unless SplitNormAttributes::gated
// there are no z and dz among the operands, and 1 stands in place of the sigmoid.

/// split_norm_squares: x [s,b,h]; squares [s,b] in fp32: the sum of those of each row.
CostFunction split_norm_squares_cost;
HostKernel split_norm_squares_host;

/// split_norm: x [s,b,h], squares of all columns, weight [1,h], z [s,b,h]; y [s,b,h]. SplitNormAttributes.
CostFunction split_norm_cost;
HostKernel split_norm_host;

/// split_norm_products: x, squares, weight, z, dy; products [s,b] in fp32: the sum of g n of each row.
CostFunction split_norm_products_cost;
HostKernel split_norm_products_host;

/// split_norm_backward: x, squares, weight, z, dy, products of all columns; dx, dz, dweight. That of the weight is added.
CostFunction split_norm_backward_cost;
HostKernel split_norm_backward_host;

}  // namespace tandem
