#pragma once

#include <span>
#include <vector>

#include "runtime/ops/matrix_product.h"

namespace tandem {

/// A column-major matrix as cuBLAS takes it: `leading` elements from one column to the next. `rows` and `columns` are those in
/// memory, before it is transposed.
struct ColumnMajorMatrix {
  std::int64_t rows = 0, columns = 0, leading = 0;
  bool transposed = false;
  std::int64_t step = 0;  ///< elements from one product's matrix to the next one's
  auto operator<=>(const ColumnMajorMatrix&) const = default;
};

/// result[m,n] = first[m,k] second[k,n], `count` times at even steps.
struct ColumnMajorProduct {
  GemmSize size;
  ColumnMajorMatrix first, second, result;
  std::int32_t count = 1;
  auto operator<=>(const ColumnMajorProduct&) const = default;
};

/// Equal products at even steps: `first` and `count` - 1 more.
struct ProductBatch {
  MatrixProduct first;
  std::int32_t count = 1;
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
};

/// Merges what follows one another with equal sizes at even steps; leaves empty C out.
std::vector<ProductBatch> batches_of(std::span<const MatrixProduct> products);

/// A row-major matrix read column-major is its transpose, and C^T = B^T A^T: `first` is B, `second` A.
ColumnMajorProduct column_major(const ProductBatch& batch);

}  // namespace tandem
