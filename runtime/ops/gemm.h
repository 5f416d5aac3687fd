#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// gemm: A, B; C. C[m,n] = op(A)[m,k] op(B)[k,n], by GemmAttributes; C is updated when `accumulate`, else written.
///
/// Every operand is a matrix of all its leading dimensions by its last one. With X [s,b,k], W [n,k] and Y [s,b,n]:
///   Y   = X W^T     {transpose_b}
///   dX  = dY W      {}
///   dW += dY^T X    {transpose_a, accumulate}
///
/// FLOPs: 2 m n k in A's dtype (a multiplication and an addition per product).
CostFunction gemm_cost;
HostKernel gemm_host;

}  // namespace tandem
