#include "scenarios/lowering/attention.h"

#include "scenarios/lowering/attend.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/recompute.h"

namespace tandem::scenarios {
namespace {

SplitHeadsAttributes split_attributes(const Context& context) {
  return {.heads = static_cast<std::int32_t>(context.sizes.heads),
          .kv_heads = static_cast<std::int32_t>(context.sizes.kv_heads),
          .rotate = context.scenario.model.rotary,
          .base = static_cast<float>(context.scenario.model.rotary_base),
          .positions = context.sizes.positions};
}

Heads split_heads(Context& context, const std::vector<ParameterId>& weights, BufferId qkv) {
  const LocalSizes& n = context.sizes;
  const Shape keys(n.sequence, n.batch, n.kv_heads, n.head_dim);
  const Heads heads = make_heads(context, Shape(n.sequence, n.batch, n.heads, n.head_dim), keys, keys);
  const std::vector<BufferId> parts = outputs_apart(context, weights, qkv);
  if (parts.size() == 1) {
    context.kernel(OpKind::split_heads, split_attributes(context), "rotary", {qkv}, {heads.q, heads.k, heads.v});
  } else {
    context.kernel(OpKind::split_heads, split_attributes(context), "rotary", {parts[0], parts[1]}, {heads.q, heads.k, heads.v});
  }
  return heads;
}

BufferId split_heads_backward(Context& context, const std::vector<ParameterId>& weights, const Heads& d, const Shape& shape) {
  const BufferId dqkv = context.activation(shape);
  const std::vector<BufferId> parts = outputs_apart(context, weights, dqkv);
  if (parts.size() == 1) {
    context.kernel(OpKind::split_heads_backward, split_attributes(context), "rotary", {d.q, d.k, d.v}, {dqkv});
  } else {
    context.kernel(OpKind::split_heads_backward, split_attributes(context), "rotary", {d.q, d.k, d.v}, {parts[0], parts[1]});
  }
  return dqkv;
}

/// From the projections to the heads' outputs, side by side.
BufferId core_attention(Context& context, Tape& tape, const std::vector<ParameterId>& weights, BufferId qkv) {
  const Heads heads = split_heads(context, weights, qkv);
  const Attended attended = attend(context, heads);
  tape.push([=](Context& c, BufferId dout) {
    return split_heads_backward(c, weights, attended.backward(c, heads, dout), c.shape_of(qkv));
  });
  return attended.out;
}

/// Of the projections' outputs on this rank. Those of q, k and v are parts of one tensor: without rotary positions the gradient
/// of k's part is zero but for rounding, as a softmax does not see what all keys have in common.
void declare_biases(const Context& context, ChunkParameters& parameters, const std::string& layer, AttentionParameters& weights) {
  const LocalSizes& n = context.sizes;
  const std::int64_t queries = n.heads * n.head_dim * n.tp, keys = n.kv_heads * n.head_dim * n.tp / n.kv_replicas;
  const auto part = [&](std::int64_t first, std::int64_t heads, std::int64_t replicas) {
    const std::int64_t rows = heads * n.head_dim;
    return ParameterPiece{layer + ".qkv.bias", queries + 2 * keys, 1, first + rows * (n.tp_rank / replicas), 0, rows, 1};
  };
  const ParameterPiece q = part(0, n.heads, 1);
  const ParameterPiece k = part(queries, n.kv_heads, n.kv_replicas), v = part(queries + keys, n.kv_heads, n.kv_replicas);
  if (n.kv_replicas == 1) {
    weights.qkv_bias = {parameters.declare({.pieces = {q, k, v}})};
  } else {
    const double share = 1.0 / static_cast<double>(n.kv_replicas);
    const ParameterId query = parameters.declare({.pieces = {q}});
    weights.qkv_bias = {query, parameters.declare({.kind = ParameterKind::shared_kv, .pieces = {k, v}, .norm_share = share})};
  }
  weights.output_bias = parameters.declare(replicated_bias(context, layer + ".attention_output.bias", n.hidden));
}

}  // namespace

AttentionParameters declare_attention(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& n = context.sizes;
  const std::int64_t h = n.hidden;
  const auto rows_of = [&](const char* name, std::int64_t heads, std::int64_t replicas) {
    const std::int64_t rows = heads * n.head_dim;
    return ParameterPiece{layer + name, rows * n.tp / replicas, h, rows * (n.tp_rank / replicas), 0, rows, h};
  };
  const ParameterPiece q = rows_of(".q", n.heads, 1);
  const ParameterPiece k = rows_of(".k", n.kv_heads, n.kv_replicas), v = rows_of(".v", n.kv_heads, n.kv_replicas);
  AttentionParameters weights;
  if (n.kv_replicas == 1) {
    weights.qkv = {parameters.declare({.pieces = {q, k, v}})};
  } else {
    const double share = 1.0 / static_cast<double>(n.kv_replicas);
    const ParameterId query = parameters.declare({.pieces = {q}});
    weights.qkv = {query, parameters.declare({.kind = ParameterKind::shared_kv, .pieces = {k, v}, .norm_share = share})};
  }
  const std::int64_t columns = n.heads * n.head_dim;
  weights.output =
      parameters.declare({.pieces = {{layer + ".attention_output", h, columns * n.tp, 0, columns * n.tp_rank, h, columns}}});
  if (context.scenario.model.linear_bias) declare_biases(context, parameters, layer, weights);
  return weights;
}

BufferId attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId x) {
  const BufferId qkv = column_parallel(context, tape, weights.qkv, x, "qkv", GemmMath::as_trained, weights.qkv_bias);
  const Module core = [projections = weights.qkv](Context& c, Tape& t, BufferId in) {
    return core_attention(c, t, projections, in);
  };
  const BufferId heads = context.recompute().attention ? checkpoint(context, tape, core, qkv) : core(context, tape, qkv);
  // The heads' outputs lie side by side: the same elements as one row per token.
  const LocalSizes& n = context.sizes;
  const BufferId rows = context.builder.view(heads, 0, Shape(n.sequence, n.batch, n.heads * n.head_dim));
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, c.shape_of(heads)); });
  return row_parallel(context, tape, weights.output, rows, "attention output", weights.output_bias);
}

}  // namespace tandem::scenarios
