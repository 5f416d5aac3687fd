#pragma once

#include <vector>

#include "runtime/ops/matrix_product.h"

namespace tandem {

/// batched_gemm: A, B; C. The products of unfused attention, one for each sequence and head, by BatchedGemmAttributes. Tensors
/// lie by heads, such as q [s,b,H,d], or by scores [b,H,s,t], a matrix of queries by keys for each head:
///   scores     A [s,b,H,d], B [t,b,K,d], transpose_b: C [b,H,s,t] = factor A B^T    q k^T; backward dout v^T
///   weighted   A [b,H,s,t], B [t,b,K,d]:              C [s,b,H,d] = factor A B      p v; backward ds k
///   gathered   A [b,H,s,t], B [s,b,H,d], transpose_a: C [t,b,K,d] = factor A^T B    backward p^T dout and ds^T q
/// Query head i goes with key head i / (H/K); `gathered` sums over the H/K query heads of a key head.
///
/// FLOPs: 2 b H s t d, whatever a mask hides: the products compute all scores.
CostFunction batched_gemm_cost;
HostKernel batched_gemm_host;

/// The products of one operation, in turns that each write C whole or add to what the turn before wrote: turn i has those of the
/// i-th query head of each key head.
using ProductTurns = std::vector<std::vector<MatrixProduct>>;
struct BatchedProducts {
  ProductTurns turns;
  bool turns_add = false;  ///< all turns but the first add to C; else each writes a part of C of its own
};

/// Throws std::logic_error for shapes that break the operation's rule.
BatchedProducts batched_products(const Shape& a, const Shape& b, const Shape& c, const BatchedGemmAttributes& attributes);

/// The size of each product, and how many there are.
struct BatchedGemmSize {
  GemmSize size;
  std::int64_t count = 0;
};
BatchedGemmSize batched_gemm_size(const Shape& a, const Shape& b, const Shape& c, const BatchedGemmAttributes& attributes);

}  // namespace tandem
