#include "scenarios/lowering/attention.h"

#include <array>
#include <functional>

#include "scenarios/lowering/attend.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"
#include "scenarios/lowering/recompute.h"

namespace tandem::scenarios {
namespace {

/// Of the layer that is being lowered.
bool is_rotated(const Context& context) {
  const ModelSpec& model = context.scenario.model;
  const bool full = model.layer_kind(context.layer).mixer == Mixer::full_attention;
  return model.rotary && (model.rotary_full_attention || !full);
}

SplitHeadsAttributes split_attributes(Context& context, bool rotate) {
  const ModelSpec& model = context.scenario.model;
  const bool slides = model.layer_kind(context.layer).mixer == Mixer::sliding_attention;
  const double base = slides && model.sliding_rotary_base > 0 ? model.sliding_rotary_base : model.rotary_base;
  return {.heads = static_cast<std::int32_t>(context.sizes.heads),
          .kv_heads = static_cast<std::int32_t>(context.sizes.kv_heads),
          .rotate = rotate,
          .base = static_cast<float>(base),
          .positions = context.sizes.positions,
          .rotated = model.rotary_share < 1 ? static_cast<std::int32_t>(model.rotated_width()) : 0,
          .documents = rotate ? documents(context) : Documents{}};
}

/// Heads that have been split, on their way to being attended, and the way back.
struct SplitHeads {
  Heads heads;
  std::function<void(Context&, const Heads& d, const std::vector<BufferId>& dparts)> backward;
};

/// Rotated as they are split.
SplitHeads split_and_rotate(Context& context, const std::vector<BufferId>& parts, const Heads& heads) {
  const SplitHeadsAttributes attributes = split_attributes(context, is_rotated(context));
  context.kernel(OpKind::split_heads, attributes, "rotary", parts, std::array{heads.q, heads.k, heads.v});
  return {heads, [=](Context& c, const Heads& d, const std::vector<BufferId>& dparts) {
            c.kernel(OpKind::split_heads_backward, attributes, "rotary", std::array{d.q, d.k, d.v}, dparts);
          }};
}

/// One row for each head, or one for all of a token.
BufferId normed_rows(Context& context, BufferId heads) {
  const Shape shape = context.shape_of(heads);
  if (context.scenario.model.qk_norm == QkNorm::head) return heads;
  return context.builder.view(heads, 0, Shape(shape[0], shape[1], shape[2] * shape[3]));
}

/// Normalised between the two.
SplitHeads split_norm_and_rotate(Context& context, const AttentionParameters& weights, const std::vector<BufferId>& parts,
                                 const Heads& heads) {
  const SplitHeadsAttributes split = split_attributes(context, false), rotation = split_attributes(context, true);
  const bool rotates = is_rotated(context);
  const BufferId q = context.activation(context.shape_of(heads.q)), k = context.activation(context.shape_of(heads.k));
  context.kernel(OpKind::split_heads, split, "split heads", parts, std::array{q, k, heads.v});
  Tape of_queries, of_keys;
  norm(context, of_queries, *weights.query_norm, normed_rows(context, q), normed_rows(context, heads.q), "query norm");
  norm(context, of_keys, *weights.key_norm, normed_rows(context, k), normed_rows(context, heads.k), "key norm");
  if (rotates) context.kernel(OpKind::rotary, rotation, "rotary", {}, {}, {heads.q, heads.k});
  return {heads, [=](Context& c, const Heads& d, const std::vector<BufferId>& dparts) {
            if (rotates) c.kernel(OpKind::rotary_backward, rotation, "rotary", {}, {}, {d.q, d.k});
            const auto back = [&](const Tape& tape, BufferId dy) {
              return c.builder.view(tape.backward(c, normed_rows(c, dy)), 0, c.shape_of(dy));
            };
            const BufferId dq = back(of_queries, d.q), dk = back(of_keys, d.k);
            c.kernel(OpKind::split_heads_backward, split, "split heads", std::array{dq, dk, d.v}, dparts);
          }};
}

SplitHeads split_heads(Context& context, const AttentionParameters& weights, BufferId qkv) {
  const LocalSizes& n = context.sizes;
  const Shape keys(n.sequence, n.batch, n.kv_heads, n.head_dim);
  Heads heads = make_heads(context, Shape(n.sequence, n.batch, n.heads, n.head_dim), keys, keys);
  if (weights.sink) heads.sink = AttentionSink{*weights.sink, 0, n.heads};
  const std::vector<BufferId> parts = outputs_apart(context, weights.qkv, qkv);
  return weights.query_norm ? split_norm_and_rotate(context, weights, parts, heads) : split_and_rotate(context, parts, heads);
}

/// From the projections to the heads' outputs, side by side.
BufferId core_attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId qkv) {
  const SplitHeads split = split_heads(context, weights, qkv);
  const Attended attended = attend(context, split.heads);
  tape.push([=](Context& c, BufferId dout) {
    const Heads d = attended.backward(c, split.heads, dout);
    const BufferId dqkv = c.activation(c.shape_of(qkv));
    split.backward(c, d, outputs_apart(c, weights.qkv, dqkv));
    return dqkv;
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
    return ParameterPiece{layer + ".qkv.bias",   queries + 2 * keys, 1, first + rows * (n.tp_rank / replicas), 0, rows, 1,
                          rows * n.tp / replicas};
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
  if (context.scenario.model.biases_of_attention() == AttentionBias::all)
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
  const ModelSpec& model = context.scenario.model;
  if (model.biases_of_attention() != AttentionBias::none) declare_biases(context, parameters, layer, weights);
  if (model.qk_norm != QkNorm::none) {
    const bool apart = model.qk_norm == QkNorm::head;
    const auto declare = [&](const char* name, std::int64_t heads) {
      return declare_norm_of_heads(context, parameters, layer + name, (apart ? 1 : heads) * n.head_dim);
    };
    weights.query_norm = declare(".query_norm", n.heads);
    weights.key_norm = declare(".key_norm", n.kv_heads);
  }
  if (model.attention_sinks)
    weights.sink = parameters.declare({.pieces = {{layer + ".sink.bias", model.heads, 1, n.heads * n.tp_rank, 0, n.heads, 1}}});
  return weights;
}

BufferId attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId x) {
  const BufferId qkv = column_parallel(context, tape, weights.qkv, x, "qkv", GemmMath::as_trained, weights.qkv_bias);
  const Module core = [weights](Context& c, Tape& t, BufferId in) { return core_attention(c, t, weights, in); };
  const BufferId heads = context.recompute().attention ? checkpoint(context, tape, core, qkv) : core(context, tape, qkv);
  // The heads' outputs lie side by side: the same elements as one row per token.
  const LocalSizes& n = context.sizes;
  const BufferId rows = context.builder.view(heads, 0, Shape(n.sequence, n.batch, n.heads * n.head_dim));
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, c.shape_of(heads)); });
  return row_parallel(context, tape, weights.output, rows, "attention output", weights.output_bias);
}

}  // namespace tandem::scenarios
