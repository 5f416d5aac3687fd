#include "runtime/ops/gemm.h"

#include "runtime/ops/host_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

GemmSize size_of_gemm(const Shape& a, const Shape& b, const Shape& c, const GemmAttributes& attributes) {
  const GemmSize size{.m = attributes.transpose_a ? columns_of(a) : rows_of(a),
                      .n = attributes.transpose_b ? rows_of(b) : columns_of(b),
                      .k = attributes.transpose_a ? rows_of(a) : columns_of(a)};
  expect_shapes(size.k == (attributes.transpose_b ? columns_of(b) : rows_of(b)), "gemm needs A [m,k] and B [k,n]");
  expect_shapes(size.m == rows_of(c) && size.n == columns_of(c), "gemm needs C [m,n]");
  return size;
}

}  // namespace

OpCost gemm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "gemm");
  const GemmSize size = size_of_gemm(a.shape, b.shape, c.shape, attributes);
  return {.flops = 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k),
          .math = a.dtype,
          .bytes = bytes_of(a, b, c) + (attributes.accumulate ? c.bytes() : 0)};
}

void gemm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "gemm");
  host_gemm(size_of_gemm(a.shape, b.shape, c.shape, attributes), {a.f32(), columns_of(a.shape), attributes.transpose_a},
            {b.f32(), columns_of(b.shape), attributes.transpose_b}, {c.f32(), columns_of(c.shape)}, 1.0F, attributes.accumulate);
}

}  // namespace tandem
