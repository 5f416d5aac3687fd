#include "runtime/ops/grouped_gemm.h"

#include <numeric>

#include "runtime/ops/host_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

struct GroupedSize {
  std::int64_t rows = 0, n = 0, k = 0;  ///< the weight of one expert is [n, k]
};

GroupedSize size_of_grouped_gemm(const Shape& a, const Shape& b, const Shape& c, const GroupedGemmAttributes& attributes) {
  const auto experts = static_cast<std::int64_t>(attributes.rows.size());
  const Shape& weight = attributes.transpose_a ? c : b;
  const Shape& other = attributes.transpose_a ? b : c;
  const GroupedSize size{.rows = rows_of(a), .n = rows_of(weight) / experts, .k = columns_of(weight)};
  const std::int64_t listed = std::accumulate(attributes.rows.begin(), attributes.rows.end(), std::int64_t{0});
  expect_shapes(size.rows == listed && size.rows == rows_of(other), "grouped_gemm's rows are those of its experts");
  expect_shapes(rows_of(weight) == size.n * experts, "grouped_gemm's weights are equal");
  expect_shapes(columns_of(a) == (attributes.transpose_b ? size.k : size.n), "grouped_gemm's A fits its weights");
  expect_shapes(columns_of(other) == (attributes.transpose_b ? size.n : size.k), "grouped_gemm's rows fit its weights");
  return size;
}

}  // namespace

OpCost grouped_gemm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GroupedGemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "grouped_gemm");
  const GroupedSize size = size_of_grouped_gemm(a.shape, b.shape, c.shape, attributes);
  return {.flops = 2.0 * static_cast<double>(size.rows) * static_cast<double>(size.n) * static_cast<double>(size.k),
          .math = a.dtype,
          .bytes = bytes_of(a, b, c) + (attributes.accumulate ? c.bytes() : 0)};
}

void grouped_gemm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GroupedGemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "grouped_gemm");
  const GroupedSize size = size_of_grouped_gemm(a.shape, b.shape, c.shape, attributes);
  const auto matrix = [](const HostTensor& tensor, std::int64_t first_row, bool transposed) {
    const std::int64_t stride = columns_of(tensor.shape);
    return HostMatrix{tensor.f32() + first_row * stride, stride, transposed};
  };
  std::int64_t row = 0;
  for (std::size_t e = 0; e < attributes.rows.size(); ++e) {
    const std::int64_t count = attributes.rows[e];
    const std::int64_t weight_row = static_cast<std::int64_t>(e) * size.n;
    if (attributes.transpose_a) {
      host_gemm({size.n, size.k, count}, matrix(a, row, true), matrix(b, row, false), matrix(c, weight_row, false), 1.0F,
                attributes.accumulate);
    } else if (count > 0) {
      const GemmSize product = attributes.transpose_b ? GemmSize{count, size.n, size.k} : GemmSize{count, size.k, size.n};
      host_gemm(product, matrix(a, row, false), matrix(b, weight_row, attributes.transpose_b), matrix(c, row, false), 1.0F,
                attributes.accumulate);
    }
    row += count;
  }
}

}  // namespace tandem
