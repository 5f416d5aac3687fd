#include "runtime/ops/cast.h"

#include <algorithm>

#include "runtime/ops/operands.h"

namespace tandem {

OpCost cast_cost(std::span<const OperandType> operands, const OpAttributes&) {
  Bytes bytes = 0;
  for (const OperandType& operand : operands) {
    expect_shapes(operand.shape == operands.front().shape, "cast keeps the shape");
    bytes += operand.bytes();
  }
  return memory_cost(bytes);
}

void cast_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const HostTensor& x = operands.front();
  for (const HostTensor& y : operands.subspan(1)) {
    expect_shapes(y.shape == x.shape, "cast keeps the shape");
    std::copy_n(x.f32(), x.shape.elements(), y.f32());
  }
}

}  // namespace tandem
