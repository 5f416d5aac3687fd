#include "scenarios/lowering/gemm_operand.h"

#include <utility>

namespace tandem::scenarios {

namespace {

constexpr std::int64_t transformed_rows = 16;

NarrowType type_of(Recipe recipe, OperandRole role) {
  if (recipe == Recipe::nvfp4) return NarrowType::e2m1;
  const bool whole_tensors = recipe == Recipe::delayed || recipe == Recipe::current;
  return whole_tensors && role == OperandRole::gradient ? NarrowType::e5m2 : NarrowType::e4m3;
}

/// Whether the rows of all operands fall into groups that are transformed, and so do their parts under `training.overlap.tp`.
/// Else two operands of a product might be grouped in different ways.
bool transforms(const Context& context, const std::vector<std::int32_t>& rows) {
  return !rows.empty() || context.sizes.sequence_shard * context.sizes.batch % transformed_rows == 0;
}

}  // namespace

Scaling scaling_of(Recipe recipe, OperandRole role) {
  const bool is_weight = role == OperandRole::weight;
  switch (recipe) {
    case Recipe::delayed:
    case Recipe::current:
      return Scaling::tensor;
    case Recipe::blockwise:
      return is_weight ? Scaling::squares_128 : Scaling::blocks_128;
    case Recipe::mxfp8:
      return Scaling::blocks_32;
    case Recipe::nvfp4:
      return is_weight ? Scaling::squares_16 : Scaling::blocks_16;
  }
  return Scaling::none;
}

GemmOperand casts_of(Context& context, const Shape& shape, OperandRole role) {
  const DType type = context.scenario.training.precision;
  const Scaling scaling = scaling_of(context.scenario.training.recipe, role);
  const BufferId by_row = context.activation(shape, type, scaling);
  return {by_row, context.scenario.casts_once() ? by_row : context.activation(shape, type, scaling)};
}

void cast_into(Context& context, BufferId x, const GemmOperand& into, const CastAttributes& attributes) {
  ++context.casts;
  if (into.by_row == into.by_column)
    context.kernel(OpKind::cast, attributes, "cast", {x}, {into.by_row});
  else
    context.kernel(OpKind::cast, attributes, "cast", {x}, {into.by_row, into.by_column});
}

CastAttributes cast_attributes(const Context& context, OperandRole role, std::vector<std::int32_t> rows) {
  const Recipe recipe = context.scenario.training.recipe;
  CastAttributes attributes{.to = type_of(recipe, role), .scaling = scaling_of(recipe, role)};
  if (recipe == Recipe::nvfp4) {
    attributes.transforms = role != OperandRole::weight && transforms(context, rows);
    attributes.stochastic = role == OperandRole::gradient;
    if (attributes.stochastic) attributes.seed = context.layer;
  }
  attributes.rows = std::move(rows);
  return attributes;
}

bool is_cast(const Context& context, GemmMath math) {
  if (math == GemmMath::of_output_proj) return context.scenario.training.fp8_output_proj;
  return context.scenario.casts_in(context.layer);
}

namespace {

/// Of a weight: by columns, and by rows where it was gathered in bf16. Where one cast does for both, nothing is left to do of
/// the others but what a host does.
GemmOperand kept_as_cast(Context& context, BufferId x, OperandRole role, std::vector<std::int32_t> rows) {
  CastAttributes attributes = cast_attributes(context, role, std::move(rows));
  const bool once = context.scenario.casts_once();
  const GemmOperand kept{x, once ? x : context.activation(context.shape_of(x), context.type_of(x), attributes.scaling)};
  const Buffer weight = context.builder.dag().buffers[x];
  if (const auto gathered = context.gathered_weights.find(weight.base); gathered != context.gathered_weights.end()) {
    cast_into(context, context.builder.view(gathered->second, weight.offset, weight.shape), kept, attributes);
    return kept;
  }
  attributes.in_place = true;
  attributes.fused = once;
  if (once)
    context.kernel(OpKind::cast, attributes, "cast", {}, {}, {x});
  else
    context.kernel(OpKind::cast, attributes, "cast", {}, {kept.by_column}, {x});
  return kept;
}

}  // namespace

GemmOperand gemm_operand(Context& context, BufferId x, OperandRole role, GemmMath math, const std::vector<std::int32_t>& rows) {
  if (!is_cast(context, math)) return {x, x};
  const auto [known, is_new] = context.cast_operands.try_emplace(x);
  if (is_new && context.type_of(x) == context.scenario.training.precision) {
    *known = kept_as_cast(context, x, role, rows);
  } else if (is_new) {
    *known = casts_of(context, context.shape_of(x), role);
    cast_into(context, x, *known, cast_attributes(context, role, rows));
  }
  return *known;
}

void cast_where_made(Context& context, BufferId x, OperandRole role, const std::vector<std::int32_t>& rows) {
  const GemmOperand made = casts_of(context, context.shape_of(x), role);
  CastAttributes attributes = cast_attributes(context, role, rows);
  attributes.fused = true;
  cast_into(context, x, made, attributes);
  context.cast_operands[x] = made;
}

BufferId attention_operand(Context& context, BufferId x, OperandRole role) {
  if (!context.scenario.training.fp8_attention || !is_cast(context, GemmMath::as_trained)) return x;
  const auto [known, is_new] = context.cast_operands.try_emplace(x);
  if (is_new) {
    const BufferId cast = context.activation(context.shape_of(x), DType::f8, Scaling::tensor);
    *known = {cast, cast};
    const bool is_recipes = context.scenario.training.precision == DType::f8;  // nvfp4's transforms are not for attention
    const CastAttributes attributes{.to = type_of(Recipe::current, role), .scaling = Scaling::tensor, .alone = !is_recipes};
    context.kernel(OpKind::cast, attributes, "cast", {x}, {cast});
  }
  return known->by_row;
}

GemmOperand gemm_operand_part(Context& context, BufferId whole, OperandRole role, std::int64_t offset, BufferId part) {
  if (!is_cast(context, GemmMath::as_trained) || context.type_of(part) == context.scenario.training.precision)
    return {part, part};
  const auto [known, is_new] = context.cast_operands.try_emplace(whole);
  if (is_new) *known = casts_of(context, context.shape_of(whole), role);
  const Shape shape = context.shape_of(part);
  const BufferId by_row = context.builder.view(known->by_row, offset, shape);
  const bool once = known->by_row == known->by_column;
  const GemmOperand place{by_row, once ? by_row : context.builder.view(known->by_column, offset, shape)};
  cast_into(context, part, place, cast_attributes(context, role));
  return place;
}

namespace {

bool is_cast_by_norm(const Context& context, BufferId x) {
  return context.scenario.software.norm_casts && context.inputs_of_norm.contains(x);
}

}  // namespace

bool casts_first(const Context& context, BufferId shard, GemmMath math) {
  const bool gathers = context.sizes.sequence_parallel && context.scenario.software.gathers_casts;
  return is_cast(context, math) && (gathers || is_cast_by_norm(context, shard));
}

GemmOperand shard_operand(Context& context, BufferId shard, OperandRole role) {
  const auto [known, is_new] = context.cast_operands.try_emplace(shard);
  if (!is_new) return *known;
  CastAttributes attributes = cast_attributes(context, role);
  if (context.scenario.scales_whole_tensors()) {
    attributes.fused = is_cast_by_norm(context, shard);
    const BufferId by_row = context.activation(context.shape_of(shard), context.scenario.training.precision, attributes.scaling);
    *known = {by_row, by_row};
  } else {
    *known = casts_of(context, context.shape_of(shard), role);
  }
  const GemmOperand casts = *known;
  cast_into(context, shard, casts, attributes);
  return casts;
}

BufferId gathered_like(Context& context, BufferId shard) {
  const Buffer buffer = context.builder.dag().buffers[shard];
  return context.builder.buffer(context.rank, BufferKind::communication, buffer.dtype, context.gathered_shape(shard),
                                buffer.scaling);
}

BufferId gather_cast(Context& context, BufferId shard, std::string_view name) {
  if (!context.sizes.sequence_parallel) return shard;
  const BufferId whole = gathered_like(context, shard);
  context.collective(OpKind::all_gather, Slot::tp, Stream::tp, name, shard, whole);
  return whole;
}

void note_gathered(Context& context, BufferId whole) {
  if (const auto [known, is_new] = context.cast_operands.try_emplace(whole); is_new)
    *known = {whole, context.scenario.casts_once() ? whole : no_id};
}

BufferId gather_operand(Context& context, BufferId shard, OperandRole role, GemmMath math, OperandUse use,
                        std::string_view name) {
  if (!casts_first(context, shard, math)) return context.gather_sequence(shard, name);
  const GemmOperand own = shard_operand(context, shard, role);
  if (context.scenario.scales_whole_tensors()) {
    const BufferId whole = gather_cast(context, own.by_row, name);
    note_gathered(context, whole);
    return whole;
  }
  GemmOperand whole;
  if (use != OperandUse::by_column) whole.by_row = gather_cast(context, own.by_row, name);
  if (use != OperandUse::by_row) whole.by_column = gather_cast(context, own.by_column, name);
  const BufferId handle = whole.by_row == no_id ? whole.by_column : whole.by_row;
  context.cast_operands[handle] = whole;
  return handle;
}

BufferId operand_by_column(Context& context, BufferId x, OperandRole role, GemmMath math) {
  const GemmOperand operand = gemm_operand(context, x, role, math);
  if (operand.by_column != no_id) return operand.by_column;
  CastAttributes attributes = cast_attributes(context, role);
  attributes.alone = true;  // its scale is known
  const BufferId by_column = context.activation(context.shape_of(x), context.type_of(x), attributes.scaling);
  context.cast_operands[x].by_column = by_column;
  context.kernel(OpKind::cast, attributes, "transpose", {operand.by_row}, {by_column});
  return by_column;
}

}  // namespace tandem::scenarios
