#include "scenarios/lowering/attention.h"

#include "scenarios/lowering/attend.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/recompute.h"

namespace tandem {
namespace {

SplitHeadsAttributes split_attributes(const Context& context) {
  return {.heads = static_cast<std::int32_t>(context.sizes.heads),
          .kv_heads = static_cast<std::int32_t>(context.sizes.kv_heads),
          .rotate = context.scenario.model.rotary,
          .base = static_cast<float>(context.scenario.model.rotary_base),
          .positions = context.sizes.positions};
}

Heads split_heads(Context& context, BufferId qkv) {
  const LocalSizes& n = context.sizes;
  const Shape keys(n.sequence, n.batch, n.kv_heads, n.head_dim);
  const Heads heads = make_heads(context, Shape(n.sequence, n.batch, n.heads, n.head_dim), keys, keys);
  context.kernel(OpKind::split_heads, split_attributes(context), "rotary", {qkv}, {heads.q, heads.k, heads.v});
  return heads;
}

/// From the fused projection to the heads' outputs, side by side.
BufferId core_attention(Context& context, Tape& tape, BufferId qkv) {
  const Heads heads = split_heads(context, qkv);
  const Attended attended = attend(context, heads);
  tape.push([=](Context& c, BufferId dout) {
    const Heads d = attended.backward(c, heads, dout);
    const BufferId dqkv = c.activation(c.shape_of(qkv));
    c.kernel(OpKind::split_heads_backward, split_attributes(c), "rotary", {d.q, d.k, d.v}, {dqkv});
    return dqkv;
  });
  return attended.out;
}

}  // namespace

AttentionParameters declare_attention(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& n = context.sizes;
  const std::int64_t h = n.hidden;
  const auto rows_of = [&](const char* name, std::int64_t heads) {
    const std::int64_t rows = heads * n.head_dim;
    return ParameterPiece{layer + name, rows * n.tp, h, rows * n.tp_rank, 0, rows, h};
  };
  ParameterSpec qkv;
  qkv.pieces = {rows_of(".q", n.heads), rows_of(".k", n.kv_heads), rows_of(".v", n.kv_heads)};
  ParameterSpec output;
  const std::int64_t columns = n.heads * n.head_dim;
  output.pieces = {{layer + ".attention_output", h, columns * n.tp, 0, columns * n.tp_rank, h, columns}};
  const ParameterId qkv_id = parameters.declare(std::move(qkv));
  return {qkv_id, parameters.declare(std::move(output))};
}

BufferId attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId x) {
  const BufferId qkv = column_parallel(context, tape, weights.qkv, x, "qkv");
  const bool again = context.recompute().attention;
  const BufferId heads = again ? checkpoint(context, tape, core_attention, qkv) : core_attention(context, tape, qkv);
  // The heads' outputs lie side by side: the same elements as one row per token.
  const LocalSizes& n = context.sizes;
  const BufferId rows = context.builder.view(heads, 0, Shape(n.sequence, n.batch, n.heads * n.head_dim));
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, c.shape_of(heads)); });
  return row_parallel(context, tape, weights.output, rows, "attention output");
}

}  // namespace tandem
