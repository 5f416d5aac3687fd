#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// What a linear layer multiplies in. Everything outside of the layers' linear GEMMs stays in bf16 when training in fp8 or fp4.
enum class GemmMath {
  as_trained,
  not_cast
};

/// `x` as the operand of linear GEMMs: `x` itself, or with fp8 and fp4 its two casts. The product of a forward pass, y = x W^T,
/// reads both operands by rows; the gradient of the input reads W by columns, that of the weight both of its operands.
///
/// Cast when first needed and kept for as long as it is read: weights are cast once per step, as Transformer Engine caches them.
///
/// `tensors` of equal width lie below each other in `x`, each with scales of its own, as those of experts do.
GemmOperand gemm_operand(Context& context, BufferId x, GemmMath math, std::int64_t tensors = 1);
bool is_cast(const Context& context, GemmMath math);

/// The same for a linear layer's `whole` that comes in parts, of which `part` holds the elements from `offset` on: each is cast
/// to its place, once. `gemm_operand` gives the whole when all parts have come.
GemmOperand gemm_operand_part(Context& context, BufferId whole, std::int64_t offset, BufferId part);

}  // namespace tandem::scenarios
