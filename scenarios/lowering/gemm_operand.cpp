#include "scenarios/lowering/gemm_operand.h"

namespace tandem::scenarios {

namespace {

Scaling scaling_of(Recipe recipe) { return recipe == Recipe::nvfp4 ? Scaling::blocks_16 : Scaling::none; }

GemmOperand casts_like(Context& context, BufferId x) {
  const Shape shape = context.shape_of(x);
  const DType type = context.scenario.training.precision;
  const Scaling scaling = scaling_of(context.scenario.training.recipe);
  return {context.activation(shape, type, scaling), context.activation(shape, type, scaling)};
}

void cast(Context& context, BufferId x, const GemmOperand& into, std::int64_t tensors = 1) {
  OpAttributes attributes;
  if (tensors > 1) attributes = GroupsAttributes{static_cast<std::int32_t>(tensors)};
  context.kernel(OpKind::cast, attributes, "cast", {x}, {into.by_row, into.by_column});
}

}  // namespace

bool is_cast(const Context& context, GemmMath math) {
  return math == GemmMath::as_trained && context.scenario.casts_in(context.layer);
}

GemmOperand gemm_operand(Context& context, BufferId x, GemmMath math, std::int64_t tensors) {
  if (!is_cast(context, math)) return {x, x};
  const auto [known, is_new] = context.cast_operands.try_emplace(x);
  if (is_new) {
    known->second = casts_like(context, x);
    cast(context, x, known->second, tensors);
  }
  return known->second;
}

GemmOperand gemm_operand_part(Context& context, BufferId whole, std::int64_t offset, BufferId part) {
  if (!is_cast(context, GemmMath::as_trained)) return {part, part};
  const auto [known, is_new] = context.cast_operands.try_emplace(whole);
  if (is_new) known->second = casts_like(context, whole);
  const Shape shape = context.shape_of(part);
  const GemmOperand place{context.builder.view(known->second.by_row, offset, shape),
                          context.builder.view(known->second.by_column, offset, shape)};
  cast(context, part, place);
  return place;
}

}  // namespace tandem::scenarios
