#include "scenarios/lowering/gemm_operand.h"

namespace tandem {

GemmOperand gemm_operand(Context& context, BufferId x, GemmMath math) {
  if (context.scenario.training.precision != DType::f8 || math == GemmMath::not_fp8) return {x, x};
  const auto [cast, is_new] = context.fp8_operands.try_emplace(x);
  if (is_new) {
    const Shape shape = context.shape_of(x);
    cast->second = {context.activation(shape, DType::f8), context.activation(shape, DType::f8)};
    context.kernel(OpKind::cast, {}, "cast", {x}, {cast->second.by_row, cast->second.by_column});
  }
  return cast->second;
}

}  // namespace tandem
