#include "runtime/ops/matrix_product.h"

#include <numeric>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// The operand's matrix from its row `first_row` on; its depth runs along the shape's columns or over its rows.
MatrixSlice slice_of(const OperandType& operand, std::int64_t first_row, bool transposed, bool depth_over_rows) {
  if (operand.dtype == DType::f8 && depth_over_rows) return {first_row, rows_of(operand.shape), !transposed};
  return {first_row * columns_of(operand.shape), columns_of(operand.shape), transposed};
}

MatrixSlice left(const OperandType& a, std::int64_t first_row, bool transposed) {
  return slice_of(a, first_row, transposed, transposed);
}
MatrixSlice right(const OperandType& b, std::int64_t first_row, bool transposed) {
  return slice_of(b, first_row, transposed, !transposed);
}
MatrixSlice result(const OperandType& c, std::int64_t first_row) {
  return {first_row * columns_of(c.shape), columns_of(c.shape)};
}

}  // namespace

MatrixProduct gemm_product(const OperandType& a, const OperandType& b, const OperandType& c, const GemmAttributes& attributes) {
  const GemmSize size{.m = attributes.transpose_a ? columns_of(a.shape) : rows_of(a.shape),
                      .n = attributes.transpose_b ? rows_of(b.shape) : columns_of(b.shape),
                      .k = attributes.transpose_a ? rows_of(a.shape) : columns_of(a.shape)};
  expect_shapes(size.k == (attributes.transpose_b ? columns_of(b.shape) : rows_of(b.shape)), "gemm needs A [m,k] and B [k,n]");
  expect_shapes(size.m == rows_of(c.shape) && size.n == columns_of(c.shape), "gemm needs C [m,n]");
  return {size, left(a, 0, attributes.transpose_a), right(b, 0, attributes.transpose_b), result(c, 0)};
}

GroupedGemmSize grouped_gemm_size(const Shape& a, const Shape& b, const Shape& c, const GroupedGemmAttributes& attributes) {
  const auto experts = static_cast<std::int64_t>(attributes.rows.size());
  const Shape& weight = attributes.transpose_a ? c : b;
  const Shape& other = attributes.transpose_a ? b : c;
  const GroupedGemmSize size{.rows = rows_of(a), .n = rows_of(weight) / experts, .k = columns_of(weight)};
  const std::int64_t listed = std::accumulate(attributes.rows.begin(), attributes.rows.end(), std::int64_t{0});
  expect_shapes(size.rows == listed && size.rows == rows_of(other), "grouped_gemm's rows are those of its experts");
  expect_shapes(rows_of(weight) == size.n * experts, "grouped_gemm's weights are equal");
  expect_shapes(columns_of(a) == (attributes.transpose_b ? size.k : size.n), "grouped_gemm's A fits its weights");
  expect_shapes(columns_of(other) == (attributes.transpose_b ? size.n : size.k), "grouped_gemm's rows fit its weights");
  return size;
}

std::vector<MatrixProduct> grouped_gemm_products(const OperandType& a, const OperandType& b, const OperandType& c,
                                                 const GroupedGemmAttributes& attributes) {
  const auto [all_rows, n, k] = grouped_gemm_size(a.shape, b.shape, c.shape, attributes);
  std::vector<MatrixProduct> products;
  std::int64_t row = 0, weight_row = 0;
  for (const std::int64_t rows : attributes.rows) {
    if (attributes.transpose_a) {
      products.push_back({{n, k, rows}, left(a, row, true), right(b, row, false), result(c, weight_row)});
    } else {
      const GemmSize size = attributes.transpose_b ? GemmSize{rows, n, k} : GemmSize{rows, k, n};
      products.push_back({size, left(a, row, false), right(b, weight_row, attributes.transpose_b), result(c, row)});
    }
    row += rows;
    weight_row += n;
  }
  return products;
}

}  // namespace tandem
