#include "scenarios/lowering/attention.h"

#include <cmath>

#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/recompute.h"

namespace tandem {
namespace {

struct Heads {
  BufferId q, k, v;
};

SplitHeadsAttributes split_attributes(const Context& context) {
  const auto length = static_cast<std::int32_t>(context.sizes.sequence);
  return {.heads = static_cast<std::int32_t>(context.sizes.heads),
          .kv_heads = static_cast<std::int32_t>(context.sizes.kv_heads),
          .rotate = context.scenario.model.rotary,
          .base = static_cast<float>(context.scenario.model.rotary_base),
          .positions = {.start = {0, 0}, .length = {length, 0}}};
}

Heads split_heads(Context& context, BufferId qkv) {
  const LocalSizes& n = context.sizes;
  const Heads heads{context.activation(Shape(n.sequence, n.batch, n.heads, n.head_dim)),
                    context.activation(Shape(n.sequence, n.batch, n.kv_heads, n.head_dim)),
                    context.activation(Shape(n.sequence, n.batch, n.kv_heads, n.head_dim))};
  context.kernel(OpKind::split_heads, split_attributes(context), "rotary", {qkv}, {heads.q, heads.k, heads.v});
  return heads;
}

/// From the fused projection to the heads' outputs, side by side.
BufferId core_attention(Context& context, Tape& tape, BufferId qkv) {
  const LocalSizes& n = context.sizes;
  const Heads heads = split_heads(context, qkv);
  const Positions positions = split_attributes(context).positions;
  const AttentionAttributes attributes{
      .causal = true, .scale = 1.0F / std::sqrt(static_cast<float>(n.head_dim)), .queries = positions, .keys = positions};
  const BufferId out = context.activation(context.shape_of(heads.q));
  const BufferId lse = context.activation(Shape(n.batch, n.heads, n.sequence), DType::f32);
  context.kernel(OpKind::attention, attributes, "attention", {heads.q, heads.k, heads.v}, {out, lse});
  tape.push([=](Context& c, BufferId dout) {
    const BufferId dq = c.activation(c.shape_of(heads.q));
    const BufferId dk = c.activation(c.shape_of(heads.k));
    const BufferId dv = c.activation(c.shape_of(heads.v));
    c.kernel(OpKind::attention_backward, attributes, "attention", {heads.q, heads.k, heads.v, out, lse, dout}, {dq, dk, dv});
    const BufferId dqkv = c.activation(c.shape_of(qkv));
    c.kernel(OpKind::split_heads_backward, split_attributes(c), "rotary", {dq, dk, dv}, {dqkv});
    return dqkv;
  });
  return out;
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
  const bool again = context.scenario.training.recompute == Recompute::selective;
  const BufferId heads = again ? checkpoint(context, tape, core_attention, qkv) : core_attention(context, tape, qkv);
  // The heads' outputs lie side by side: the same elements as one row per token.
  const LocalSizes& n = context.sizes;
  const BufferId rows = context.builder.view(heads, 0, Shape(n.sequence, n.batch, n.heads * n.head_dim));
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, c.shape_of(heads)); });
  return row_parallel(context, tape, weights.output, rows, "attention output");
}

}  // namespace tandem
