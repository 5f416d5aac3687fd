#include "runtime/ops/gemm.h"

#include "runtime/ops/host_gemm.h"
#include "runtime/ops/operands.h"

namespace tandem {

OpCost gemm_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GemmAttributes>(any);
  const auto [a, b, c] = unpack<3>(operands, "gemm");
  const auto [m, n, k] = gemm_product(a, b, c, attributes).size;
  return {.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
          .math = a.dtype,
          .bytes = bytes_of(a, b, c) + (attributes.accumulate ? c.bytes() : 0)};
}

void gemm_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<GemmAttributes>(any);
  const auto tensors = unpack<3>(operands, "gemm");
  const auto [a, b, c] = tensors;
  host_gemm(gemm_product({a.shape}, {b.shape}, {c.shape}, attributes), tensors, attributes.accumulate);
}

}  // namespace tandem
