#include "runtime/ops/grouped_gemm.h"

#include "runtime/ops/host_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {

OpCost grouped_gemm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GroupedGemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "grouped_gemm");
  const auto [rows, n, k] = grouped_gemm_size(a.shape, b.shape, c.shape, attributes);
  return {.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k),
          .math = a.dtype,
          .bytes = bytes_of(a, b, c) + (attributes.accumulate ? c.bytes() : 0)};
}

void grouped_gemm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GroupedGemmAttributes>(any);
  const auto tensors = unpack<3>(operands, "grouped_gemm");
  const auto [a, b, c] = tensors;
  for (const MatrixProduct& product : grouped_gemm_products({a.shape}, {b.shape}, {c.shape}, attributes))
    host_gemm(product, tensors, attributes.accumulate);
}

}  // namespace tandem
