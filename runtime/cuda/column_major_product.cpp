#include "runtime/cuda/column_major_product.h"

namespace tandem {
namespace {

/// A row-major [rows, columns], of which `slice` says how it lies in memory, as the transposed matrix [columns, rows].
ColumnMajorMatrix transpose_of(const MatrixSlice& slice, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  if (slice.transposed) return {rows, columns, slice.stride, true, step};
  return {columns, rows, slice.stride, false, step};
}

bool is_next(const ProductBatch& batch, const MatrixProduct& product) {
  const MatrixProduct& first = batch.first;
  const auto follows = [&](const MatrixSlice& from, const MatrixSlice& to, std::int64_t step) {
    return batch.count == 1 || to.offset == from.offset + batch.count * step;
  };
  return product.size == first.size && follows(first.a, product.a, batch.a_step) && follows(first.b, product.b, batch.b_step) &&
         follows(first.c, product.c, batch.c_step);
}

}  // namespace

std::vector<ProductBatch> batches_of(std::span<const MatrixProduct> products) {
  std::vector<ProductBatch> batches;
  for (const MatrixProduct& product : products) {
    if (product.size.m == 0 || product.size.n == 0) continue;
    if (batches.empty() || !is_next(batches.back(), product)) {
      batches.push_back({product});
      continue;
    }
    ProductBatch& batch = batches.back();
    if (batch.count == 1) {
      batch.a_step = product.a.offset - batch.first.a.offset;
      batch.b_step = product.b.offset - batch.first.b.offset;
      batch.c_step = product.c.offset - batch.first.c.offset;
    }
    ++batch.count;
  }
  return batches;
}

ColumnMajorProduct column_major(const ProductBatch& batch) {
  const auto [m, n, k] = batch.first.size;
  return {.size = {n, m, k},
          .first = transpose_of(batch.first.b, k, n, batch.b_step),
          .second = transpose_of(batch.first.a, m, k, batch.a_step),
          .result = transpose_of(batch.first.c, m, n, batch.c_step),
          .count = batch.count};
}

}  // namespace tandem
