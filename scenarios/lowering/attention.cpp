#include "scenarios/lowering/attention.h"

#include <array>
#include <functional>
#include <memory>
#include <utility>

#include "scenarios/lowering/attend.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"
#include "scenarios/lowering/norm_over_ranks.h"
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

/// Rotated as they are split, then each head normed without weights, as Llama 4 does where it rotates.
SplitHeads rotate_and_norm(Context& context, const std::vector<BufferId>& parts, const Heads& heads) {
  Heads rotated = heads;
  rotated.q = context.activation(context.shape_of(heads.q));
  rotated.k = context.activation(context.shape_of(heads.k));
  const SplitHeads split = split_and_rotate(context, parts, rotated);
  context.kernel(OpKind::unit_norm, NormAttributes{}, "query norm", {rotated.q}, {heads.q});
  context.kernel(OpKind::unit_norm, NormAttributes{}, "key norm", {rotated.k}, {heads.k});
  return {heads, [=](Context& c, const Heads& d, const std::vector<BufferId>& dparts) {
            Heads before = d;
            before.q = c.activation(c.shape_of(d.q));
            before.k = c.activation(c.shape_of(d.k));
            c.kernel(OpKind::unit_norm_backward, NormAttributes{}, "query norm", {rotated.q, d.q}, {before.q});
            c.kernel(OpKind::unit_norm_backward, NormAttributes{}, "key norm", {rotated.k, d.k}, {before.k});
            split.backward(c, before, dparts);
          }};
}

/// One row for each head, or one for all of a token.
BufferId normed_rows(Context& context, BufferId heads) {
  const Shape shape = context.shape_of(heads);
  if (context.scenario.model.qk_norm == QkNorm::head) return heads;
  return context.builder.view(heads, 0, Shape(shape[0], shape[1], shape[2] * shape[3]));
}

/// Normalised between the two, with the other tensor-parallel ranks.
SplitHeads split_norm_over_ranks_and_rotate(Context& context, const AttentionParameters& weights,
                                            const std::vector<BufferId>& parts, const Heads& heads) {
  const SplitHeadsAttributes split = split_attributes(context, false), rotation = split_attributes(context, true);
  const bool rotates = is_rotated(context);
  const BufferId q = context.activation(context.shape_of(heads.q)), k = context.activation(context.shape_of(heads.k));
  context.kernel(OpKind::split_heads, split, "split heads", parts, std::array{q, k, heads.v});
  const NormedOverRanks normed = norm_over_ranks(context, {*weights.query_norm, *weights.key_norm}, {q, k}, {heads.q, heads.k});
  if (rotates) context.kernel(OpKind::rotary, rotation, "rotary", {}, {}, {heads.q, heads.k});
  return {heads, [=](Context& c, const Heads& d, const std::vector<BufferId>& dparts) {
            if (rotates) c.kernel(OpKind::rotary_backward, rotation, "rotary", {}, {}, {d.q, d.k});
            const auto [dq, dk] = norm_over_ranks_backward(c, normed, {d.q, d.k});
            c.kernel(OpKind::split_heads_backward, split, "split heads", std::array{dq, dk, d.v}, dparts);
          }};
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
  const bool unit = context.scenario.model.qk_norm == QkNorm::unit && is_rotated(context);
  if (!weights.query_norm) return unit ? rotate_and_norm(context, parts, heads) : split_and_rotate(context, parts, heads);
  return is_normed_over_ranks(context) ? split_norm_over_ranks_and_rotate(context, weights, parts, heads)
                                       : split_norm_and_rotate(context, weights, parts, heads);
}

/// Where the backward of a gate, which comes first, leaves the gradient of all projections, for that of attention to fill.
using ProjectedGradient = std::shared_ptr<BufferId>;

/// From the projections, or from those but the gate's, to the heads' outputs, side by side.
BufferId core_attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId qkv,
                        const ProjectedGradient& gradient) {
  SplitHeads split = split_heads(context, weights, qkv);
  Attended attended = attend(context, split.heads);
  const BufferId out = attended.out;
  tape.push([qkv, gradient = gradient, parameters = weights.qkv, split = std::move(split), attended = std::move(attended)](
                Context& c, BufferId dout) {
    const Heads d = attended.backward(c, split.heads, dout);
    const BufferId dprojected = *gradient == no_id ? c.activation(c.shape_of(qkv)) : *gradient;
    const BufferId dqkv = *gradient == no_id ? dprojected : c.builder.view(dprojected, 0, c.shape_of(qkv));
    split.backward(c, d, outputs_apart(c, parameters, dqkv));
    return dprojected;
  });
  return out;
}

/// Times the sigmoid of the gate's projection.
BufferId gate_heads(Context& context, Tape& tape, BufferId rows, BufferId gate, BufferId projected,
                    const ProjectedGradient& gradient) {
  const BufferId gated = context.activation(context.shape_of(rows));
  context.kernel(OpKind::sigmoid_gate, {}, "attention gate", {rows, gate}, {gated});
  tape.push([=](Context& c, BufferId dy) {
    *gradient = c.activation(c.shape_of(projected));
    const Shape shape = c.shape_of(gate);
    const BufferId drows = c.activation(c.shape_of(rows));
    const BufferId dgate = c.builder.view(*gradient, c.shape_of(projected).elements() - shape.elements(), shape);
    c.kernel(OpKind::sigmoid_gate_backward, {}, "attention gate", {rows, gate, dy}, {drows, dgate});
    return drows;
  });
  return gated;
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

void declare_norms_of_heads(const Context& context, ChunkParameters& parameters, const std::string& layer,
                            AttentionParameters& weights) {
  const LocalSizes& n = context.sizes;
  if (is_normed_over_ranks(context)) {
    weights.query_norm = declare_norm_over_ranks(context, parameters, layer + ".query_norm", n.heads, 1);
    weights.key_norm = declare_norm_over_ranks(context, parameters, layer + ".key_norm", n.kv_heads, n.kv_replicas);
    return;
  }
  const bool apart = context.scenario.model.qk_norm == QkNorm::head;
  const auto declare = [&](const char* name, std::int64_t heads) {
    return declare_norm_of_heads(context, parameters, layer + name, (apart ? 1 : heads) * n.head_dim);
  };
  weights.query_norm = declare(".query_norm", n.heads);
  weights.key_norm = declare(".key_norm", n.kv_heads);
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
  if (model.attention_gate) weights.gate = parameters.declare({.pieces = {rows_of(".attention_gate", n.heads, 1)}});
  if (model.biases_of_attention() != AttentionBias::none) declare_biases(context, parameters, layer, weights);
  if (model.qk_norm == QkNorm::head || model.qk_norm == QkNorm::all) declare_norms_of_heads(context, parameters, layer, weights);
  if (model.attention_sinks)
    weights.sink = parameters.declare({.pieces = {{layer + ".sink.bias", model.heads, 1, n.heads * n.tp_rank, 0, n.heads, 1}}});
  return weights;
}

BufferId attention(Context& context, Tape& tape, const AttentionParameters& weights, BufferId x) {
  std::vector<ParameterId> all = weights.qkv;
  if (weights.gate) all.push_back(*weights.gate);
  const BufferId projected = column_parallel(context, tape, all, x, "qkv", GemmMath::as_trained, weights.qkv_bias);
  const std::vector<BufferId> parts = outputs_apart(context, all, projected);
  const LocalSizes& n = context.sizes;
  const BufferId qkv =
      weights.gate ? context.builder.view(projected, 0, Shape(n.sequence, n.batch, (n.heads + 2 * n.kv_heads) * n.head_dim))
                   : projected;
  const auto gradient = std::make_shared<BufferId>(no_id);
  const auto core_again = [&weights, gradient]() -> Module {
    return
        [weights = weights, gradient](Context& c, Tape& t, BufferId in) { return core_attention(c, t, weights, in, gradient); };
  };
  const BufferId heads = context.recompute().attention ? checkpoint(context, tape, core_again(), qkv)
                                                       : core_attention(context, tape, weights, qkv, gradient);
  // The heads' outputs lie side by side: the same elements as one row per token.
  const BufferId rows = context.builder.view(heads, 0, Shape(n.sequence, n.batch, n.heads * n.head_dim));
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, c.shape_of(heads)); });
  const BufferId out = weights.gate ? gate_heads(context, tape, rows, parts.back(), projected, gradient) : rows;
  return row_parallel(context, tape, weights.output, out, "attention output", weights.output_bias);
}

}  // namespace tandem::scenarios
