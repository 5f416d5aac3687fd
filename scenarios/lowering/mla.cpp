#include "scenarios/lowering/mla.h"

#include "scenarios/lowering/attend.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"

namespace tandem {
namespace {

/// What projections down leave of a token: all that the heads of any rank need to know of it. `latent` and `rope` are what a ring
/// of context-parallel ranks would pass on, kv_rank + rope_dim numbers per token in place of every head's key and value.
struct Compressed {
  BufferId query = no_id;   ///< [s/tp, b, q_rank], or x itself
  BufferId latent = no_id;  ///< [s/tp, b, kv_rank]
  BufferId rope = no_id;    ///< [s/tp, b, rope_dim], not yet rotated
  Tape query_tape, down_tape, norm_tape;
};

/// Projected up, on the whole sequence, for the heads of this rank.
struct Projected {
  BufferId query = no_id;      ///< [s, b, heads * (nope + rope)]
  BufferId key_value = no_id;  ///< [s, b, heads * (nope + v)]
  BufferId rope = no_id;       ///< [s, b, rope_dim]
  Tape query_tape, latent_tape;
};

MlaHeadsAttributes heads_attributes(const Context& context) {
  const ModelSpec& model = context.scenario.model;
  return {.rope_dim = static_cast<std::int32_t>(model.mla.rope_dim),
          .base = static_cast<float>(model.rotary_base),
          .positions = context.sizes.positions};
}

Compressed compress(Context& context, const MlaParameters& weights, BufferId x) {
  const MlaSpec& mla = context.scenario.model.mla;
  Compressed c;
  c.query = x;
  if (mla.q_rank > 0) {
    const BufferId down = replicated_linear(context, c.query_tape, weights.query_down, x, "query down");
    c.query = norm(context, c.query_tape, weights.query_norm, down, "query norm");
  }
  const BufferId down = replicated_linear(context, c.down_tape, weights.latent_down, x, "latent down");
  const Shape rows = context.shape_of(x);
  const BufferId latent = context.activation(Shape(rows[0], rows[1], mla.kv_rank));
  c.rope = context.activation(Shape(rows[0], rows[1], mla.rope_dim));
  context.kernel(OpKind::split_columns, {}, "latent split", {down}, {latent, c.rope});
  c.latent = norm(context, c.norm_tape, weights.latent_norm, latent, "latent norm");
  return c;
}

BufferId compress_backward(Context& context, const Compressed& c, BufferId x, BufferId dquery, BufferId dlatent, BufferId drope) {
  const Shape rows = context.shape_of(x);
  const MlaSpec& mla = context.scenario.model.mla;
  const BufferId ddown = context.activation(Shape(rows[0], rows[1], mla.kv_rank + mla.rope_dim));
  const BufferId dnormed = c.norm_tape.backward(context, dlatent);
  context.kernel(OpKind::join_columns, {}, "latent split", {dnormed, drope}, {ddown});
  const BufferId through_latent = c.down_tape.backward(context, ddown);
  const BufferId through_query = c.query_tape.backward(context, dquery);
  const BufferId dx = context.activation(rows);
  context.kernel(OpKind::add, {}, "latent and query", {through_latent, through_query}, {dx});
  return dx;
}

Projected project(Context& context, const MlaParameters& weights, const Compressed& c) {
  Projected p;
  p.query = column_parallel(context, p.query_tape, weights.query_up, c.query, "query up");
  p.key_value = column_parallel(context, p.latent_tape, weights.latent_up, c.latent, "latent up");
  p.rope = context.gather_sequence(c.rope, "key rope");
  return p;
}

Heads split_heads(Context& context, const Projected& p) {
  const LocalSizes& n = context.sizes;
  const MlaSpec& mla = context.scenario.model.mla;
  const Shape qk(n.sequence, n.batch, n.heads, mla.qk_dim());
  const Heads heads = make_heads(context, qk, qk, Shape(n.sequence, n.batch, n.heads, mla.v_dim));
  context.kernel(OpKind::mla_queries, heads_attributes(context), "rotary", {p.query}, {heads.q});
  context.kernel(OpKind::mla_keys_values, heads_attributes(context), "rotary", {p.key_value, p.rope}, {heads.k, heads.v});
  return heads;
}

/// From the gradient of the heads' outputs to that of x.
BufferId backward(Context& context, const Compressed& c, const Projected& p, const Heads& heads, const Attended& a, BufferId x,
                  BufferId dout) {
  const auto like = [&](BufferId id) { return context.activation(context.shape_of(id)); };
  const Heads d = a.backward(context, heads, dout);
  const BufferId dquery = like(p.query), dkey_value = like(p.key_value), drope = like(p.rope);
  context.kernel(OpKind::mla_queries_backward, heads_attributes(context), "rotary", {d.q}, {dquery});
  context.kernel(OpKind::mla_keys_values_backward, heads_attributes(context), "rotary", {d.k, d.v}, {dkey_value, drope});
  const BufferId drope_shard = context.reduce_partial(drope, "key rope");
  const BufferId dlatent = p.latent_tape.backward(context, dkey_value);
  return compress_backward(context, c, x, p.query_tape.backward(context, dquery), dlatent, drope_shard);
}

}  // namespace

MlaParameters declare_mla(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& n = context.sizes;
  const MlaSpec& mla = context.scenario.model.mla;
  const auto whole = [&](const char* name, std::int64_t rows) {
    return ParameterPiece{layer + name, rows, n.hidden, 0, 0, rows, n.hidden};
  };
  const auto heads = [&](const char* name, std::int64_t per_head, std::int64_t inputs) {
    const std::int64_t rows = n.heads * per_head;
    ParameterSpec spec;
    spec.pieces = {{layer + name, rows * n.tp, inputs, rows * n.tp_rank, 0, rows, inputs}};
    return parameters.declare(std::move(spec));
  };
  MlaParameters weights;
  if (mla.q_rank > 0) {
    weights.query_down = parameters.declare(replicated_matrix(context, {whole(".query_down", mla.q_rank)}));
    weights.query_norm = declare_norm(context, parameters, layer + ".query_norm", mla.q_rank);
  }
  weights.query_up = heads(".query_up", mla.qk_dim(), mla.q_rank > 0 ? mla.q_rank : n.hidden);
  weights.latent_down =
      parameters.declare(replicated_matrix(context, {whole(".latent_down", mla.kv_rank), whole(".key_rope", mla.rope_dim)}));
  weights.latent_norm = declare_norm(context, parameters, layer + ".latent_norm", mla.kv_rank);
  weights.latent_up = heads(".latent_up", mla.nope_dim + mla.v_dim, mla.kv_rank);
  const std::int64_t columns = n.heads * mla.v_dim;
  ParameterSpec output;
  output.pieces = {{layer + ".attention_output", n.hidden, columns * n.tp, 0, columns * n.tp_rank, n.hidden, columns}};
  weights.output = parameters.declare(std::move(output));
  return weights;
}

BufferId mla(Context& context, Tape& tape, const MlaParameters& weights, BufferId x) {
  const Compressed compressed = compress(context, weights, x);
  const Projected projected = project(context, weights, compressed);
  const Heads heads = split_heads(context, projected);
  const Attended attended = attend(context, heads);
  tape.push([=](Context& c, BufferId dout) {
    const bool up_again = c.recompute().mla_up;
    const bool attention_again = c.recompute().attention;
    const Phase before = c.phase;
    c.phase = Phase::recompute;
    const Projected p = up_again ? project(c, weights, compressed) : projected;
    const Heads h = up_again || attention_again ? split_heads(c, p) : heads;
    const Attended a = attention_again ? attend(c, h) : attended;
    c.phase = before;
    return backward(c, compressed, p, h, a, x, dout);
  });
  // The heads' outputs lie side by side: the same elements as one row per token.
  const LocalSizes& n = context.sizes;
  const BufferId rows =
      context.builder.view(attended.out, 0, Shape(n.sequence, n.batch, n.heads * context.scenario.model.mla.v_dim));
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, c.shape_of(attended.out)); });
  return row_parallel(context, tape, weights.output, rows, "attention output");
}

}  // namespace tandem
