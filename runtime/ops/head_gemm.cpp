#include "runtime/ops/head_gemm.h"

#include "runtime/ops/host_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// Tokens by heads: `narrow` [n,H,a], which the rows of the weight belong to, and `wide` [n,H,c].
struct HeadGemmSizes {
  std::int64_t tokens = 0, heads = 0, rows = 0, columns = 0;

  HeadGemmSizes(const Shape& narrow, const Shape& wide, const Shape& weight, const HeadGemmAttributes& attributes)
      : tokens(narrow.rank == 4 ? narrow[0] * narrow[1] : 0),
        heads(narrow.rank == 4 ? narrow[2] : 0),
        rows(columns_of(narrow)),
        columns(columns_of(wide)) {
    expect_shapes(narrow.rank == 4 && wide == Shape(narrow[0], narrow[1], heads, columns),
                  "head_gemm needs tokens by heads, [s,b,H,a] and [s,b,H,c]");
    expect_shapes(rows_of(weight) == heads * attributes.head_rows && columns_of(weight) == columns,
                  "head_gemm needs a weight [H * head_rows, c]");
    expect_shapes(attributes.first_row >= 0 && attributes.first_row + rows <= attributes.head_rows,
                  "head_gemm's rows lie within those of a head");
  }
};

MatrixSlice turned(MatrixSlice slice) {
  slice.transposed = true;
  return slice;
}

}  // namespace

std::vector<MatrixProduct> head_gemm_products(const Shape& a, const Shape& b, const Shape& c,
                                              const HeadGemmAttributes& attributes) {
  expect_shapes(!(attributes.transpose_a && attributes.transpose_b), "head_gemm transposes one operand at most");
  const bool is_gradient = attributes.transpose_a, is_up = attributes.transpose_b;
  const HeadGemmSizes n(is_up ? c : a, is_gradient ? b : is_up ? a : c, is_gradient ? c : b, attributes);
  std::vector<MatrixProduct> products;
  for (std::int64_t head = 0; head < n.heads; ++head) {
    const MatrixSlice narrow{head * n.rows, n.heads * n.rows}, wide{head * n.columns, n.heads * n.columns};
    const MatrixSlice weight{(head * attributes.head_rows + attributes.first_row) * n.columns, n.columns};
    if (is_gradient) {
      products.push_back({{n.rows, n.columns, n.tokens}, turned(narrow), wide, weight});
    } else if (is_up) {
      products.push_back({{n.tokens, n.rows, n.columns}, wide, turned(weight), narrow});
    } else {
      products.push_back({{n.tokens, n.columns, n.rows}, narrow, weight, wide});
    }
  }
  return products;
}

OpCost head_gemm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<HeadGemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "head_gemm");
  const std::vector<MatrixProduct> products = head_gemm_products(a.shape, b.shape, c.shape, attributes);
  if (products.empty()) return {.flops = 0, .math = a.dtype, .bytes = 0};
  const auto heads = static_cast<std::int64_t>(products.size());
  const GemmSize size = products.front().size;
  const OperandType& weight = attributes.transpose_a ? c : b;
  const std::int64_t rows = attributes.transpose_b ? size.n : attributes.transpose_a ? size.m : size.k;
  const Bytes used = weight.bytes() * rows / attributes.head_rows;  // of each head, these rows alone
  const Bytes tokens = attributes.transpose_a ? bytes_of(a, b) : bytes_of(a, c);
  return {.flops = 2.0 * static_cast<double>(heads * size.m) * static_cast<double>(size.n) * static_cast<double>(size.k),
          .math = a.dtype,
          .bytes = tokens + (attributes.transpose_a ? 2 : 1) * used};
}

void head_gemm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<HeadGemmAttributes>(any);
  const auto tensors = unpack<3>(operands, "head_gemm");
  for (const MatrixProduct& product : head_gemm_products(tensors[0].shape, tensors[1].shape, tensors[2].shape, attributes))
    host_gemm(product, tensors, attributes.transpose_a);
}

}  // namespace tandem
