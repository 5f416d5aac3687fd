#pragma once

#include <vector>

#include "runtime/ops/operation.h"

namespace tandem {

struct GemmSize {
  std::int64_t m = 0, n = 0, k = 0;
  auto operator<=>(const GemmSize&) const = default;
};

/// A row-major matrix inside a tensor: it begins `offset` elements in and has `stride` elements from one row to the next. When
/// `transposed`, what is multiplied is the transpose of what lies there.
struct MatrixSlice {
  std::int64_t offset = 0, stride = 0;
  bool transposed = false;
};

/// C[m,n] = A[m,k] B[k,n], or added to C.
struct MatrixProduct {
  GemmSize size;
  MatrixSlice a, b, c;
};

// What gemm and grouped_gemm multiply. All throw std::logic_error for shapes that break the operation's rule.
//
// An fp8 operand lies with its depth k along the rows of memory, the only layout that Hopper's fp8 products read: it is stored
// transposed, a matrix [rows][columns] as [columns][rows], where gemm reads it by columns (A with transpose_a, B without
// transpose_b). cast writes both layouts.

MatrixProduct gemm_product(const OperandType& a, const OperandType& b, const OperandType& c, const GemmAttributes& attributes);

struct GroupedGemmSize {
  std::int64_t rows = 0;      ///< of all experts
  std::int64_t n = 0, k = 0;  ///< the weight of one expert is [n, k]
};
GroupedGemmSize grouped_gemm_size(const Shape& a, const Shape& b, const Shape& c, const GroupedGemmAttributes& attributes);

/// Returns one product per expert, also for experts without rows.
std::vector<MatrixProduct> grouped_gemm_products(const OperandType& a, const OperandType& b, const OperandType& c,
                                                 const GroupedGemmAttributes& attributes);

}  // namespace tandem
