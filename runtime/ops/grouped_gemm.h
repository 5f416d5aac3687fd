#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// grouped_gemm: A, B; C. For each expert e with its rows R_e of the tokens, by GroupedGemmAttributes:
///   forward          A [R,k], B [experts n, k], transpose_b:   C_e [R_e,n]  = A_e B_e^T
///   input gradient   A [R,n], B [experts n, k]:                C_e [R_e,k]  = A_e B_e
///   weight gradient  A [R,n], B [R,k], transpose_a:            C_e [n,k]   (+)= A_e^T B_e,  C [experts n, k]
CostFunction grouped_gemm_cost;
HostKernel grouped_gemm_host;

}  // namespace tandem
