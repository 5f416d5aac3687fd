#include "scenarios/lowering/tp_overlap.h"

#include <algorithm>
#include <functional>

namespace tandem::scenarios {
namespace {

constexpr std::int64_t most_chunks = 4;

GemmOperand weight_operand(Context& context, ParameterId weight) {
  return gemm_operand(context, context.parameters().weight(weight), OperandRole::weight, GemmMath::as_trained);
}

/// Passes the shards of all ranks round, this rank's `own` first, the others into their places in `whole`, and calls
/// multiply(operand, place) for each of them.
void ring(Context& context, BufferId own, BufferId whole, OperandRole role, std::string_view name,
          const std::function<void(const GemmOperand& shard, std::int64_t place)>& multiply) {
  const std::int64_t tp = context.sizes.tp;
  BufferId shard = own;
  for (std::int64_t hop = 0; hop < tp; ++hop) {
    const auto place_after = [&](std::int64_t hops) { return (context.sizes.tp_rank - hops + tp) % tp; };
    BufferId next = no_id;
    if (hop + 1 < tp) {
      next = context.shard_of(whole, place_after(hop + 1));
      context.collective(OpKind::send, Slot::send_tensor, Stream::tp, name, shard, no_id);
      context.collective(OpKind::receive, Slot::receive_tensor, Stream::tp_receive, name, no_id, next);
    }
    const std::int64_t place = place_after(hop);
    multiply(gemm_operand_part(context, whole, role, place * context.shape_of(shard).elements(), shard), place);
    shard = next;
  }
}

/// A rank's own shard of a gradient, and where the ring brings the others.
struct OwnShard {
  BufferId shard = no_id, whole = no_id;
  BufferId columns = no_id;  ///< its cast by columns, which is to be gathered
};

OwnShard place_own(Context& context, BufferId dy, std::string_view name) {
  if (casts_first(context, dy, GemmMath::as_trained)) {
    const Scaling scaling = scaling_of(context.scenario.training.recipe, OperandRole::gradient);
    const DType type = context.scenario.training.precision;
    const BufferId whole =
        context.builder.buffer(context.rank, BufferKind::communication, type, context.gathered_shape(dy), scaling);
    OwnShard own{.shard = context.shard_of(whole, context.sizes.tp_rank), .whole = whole};
    if (context.scenario.scales_whole_tensors())
      note_gathered(context, whole);
    else
      own.columns = context.activation(context.shape_of(dy), type, scaling);
    cast_into(context, dy, {own.shard, own.columns == no_id ? own.shard : own.columns},
              cast_attributes(context, OperandRole::gradient));
    return own;
  }
  const BufferId whole = context.gathered(context.gathered_shape(dy));
  if (is_cast(context, GemmMath::as_trained)) return {.shard = dy, .whole = whole};
  const BufferId shard = context.shard_of(whole, context.sizes.tp_rank);
  context.kernel(OpKind::scale, ScaleAttributes{1}, name, {dy}, {shard});
  return {.shard = shard, .whole = whole};
}

}  // namespace

bool overlaps_tp(const Context& context, GemmMath math) { return context.scenario.overlaps_tp() && math == GemmMath::as_trained; }

void multiply_in_ring(Context& context, const std::vector<ParameterId>& weights, BufferId x, const std::vector<BufferId>& outputs,
                      std::string_view name) {
  const bool casts = casts_first(context, x, GemmMath::as_trained);
  const BufferId own = casts ? shard_operand(context, x, OperandRole::input).by_row : x;
  const BufferId whole = casts ? gathered_like(context, own) : context.gathered(context.gathered_shape(x));
  ring(context, own, whole, OperandRole::input, name, [&](const GemmOperand& shard, std::int64_t place) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const BufferId weight = weight_operand(context, weights[i]).by_row;
      context.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, name, {shard.by_row, weight},
                     {context.shard_of(outputs[i], place)});
    }
  });
}

GatheredGradient input_gradient_in_ring(Context& context, ParameterId weight, BufferId dy, std::string_view name) {
  const BufferId by_column = weight_operand(context, weight).by_column;
  const Shape rows = context.gathered_shape(dy);
  const BufferId dx = context.activation(Shape(rows[0], rows[1], context.shape_of(by_column)[1]));
  const OwnShard own = place_own(context, dy, name);
  ring(context, own.shard, own.whole, OperandRole::gradient, name, [&](const GemmOperand& shard, std::int64_t place) {
    context.kernel(OpKind::gemm, GemmAttributes{}, name, {shard.by_row, by_column}, {context.shard_of(dx, place)});
  });
  if (own.columns != no_id) context.cast_operands[own.whole] = {own.whole, gather_cast(context, own.columns, name)};
  return {own.whole, dx};
}

BufferId multiply_and_scatter(Context& context, ParameterId weight, BufferId x, std::string_view name) {
  const BufferId a = gemm_operand(context, x, OperandRole::input, GemmMath::as_trained).by_row,
                 b = weight_operand(context, weight).by_row;
  const Shape rows = context.shape_of(x);
  const std::int64_t outputs = context.shape_of(b)[0], inputs = context.shape_of(b)[1];
  const std::int64_t chunks = std::min(most_chunks, outputs);
  std::vector<BufferId> parts;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = chunk * outputs / chunks, end = (chunk + 1) * outputs / chunks;
    const BufferId partial = context.activation(Shape(rows[0], rows[1], end - first));
    context.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, name,
                   {a, context.builder.view(b, first * inputs, Shape(end - first, inputs))}, {partial});
    parts.push_back(context.reduce_partial(partial, name));
  }
  const BufferId y = context.activation(Shape(rows[0] / context.sizes.tp, rows[1], outputs));
  context.kernel(OpKind::join_columns, {}, name, parts, std::array{y});
  return y;
}

}  // namespace tandem::scenarios
