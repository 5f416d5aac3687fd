#include "scenarios/lowering/mla.h"

#include <utility>

#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/mla_attention.h"
#include "scenarios/lowering/norm.h"
#include "scenarios/lowering/sparse_attention.h"

namespace tandem::scenarios {
namespace {

struct Compressed {
  Latents latents;
  Tape query_tape, down_tape, norm_tape;
};

Compressed compress(Context& context, const MlaParameters& weights, BufferId x) {
  const MlaSpec& mla = context.scenario.model.mla;
  Compressed c;
  c.latents.query = x;
  if (mla.q_rank > 0) {
    const BufferId down = replicated_linear(context, c.query_tape, weights.query_down, x, "query down");
    c.latents.query = norm(context, c.query_tape, weights.query_norm, down, "query norm");
  }
  const BufferId down = replicated_linear(context, c.down_tape, weights.latent_down, x, "latent down");
  const Shape rows = context.shape_of(x);
  const Shape latent(rows[0], rows[1], mla.kv_rank), rope(rows[0], rows[1], mla.rope_dim);
  c.latents.keys = passed_in(context, context.activation(Shape(latent.elements() + rope.elements())), latent, rope);
  const BufferId not_normed = context.activation(latent);
  context.kernel(OpKind::split_columns, {}, "latent split", {down}, {not_normed, c.latents.keys.second});
  norm(context, c.norm_tape, weights.latent_norm, not_normed, c.latents.keys.first, "latent norm");
  return c;
}

BufferId compress_backward(Context& context, const Compressed& c, BufferId x, const Latents& d) {
  const Shape rows = context.shape_of(x);
  const MlaSpec& mla = context.scenario.model.mla;
  const BufferId ddown = context.activation(Shape(rows[0], rows[1], mla.kv_rank + mla.rope_dim));
  const BufferId dnormed = c.norm_tape.backward(context, d.keys.first);
  context.kernel(OpKind::join_columns, {}, "latent split", {dnormed, d.keys.second}, {ddown});
  const BufferId through_latent = c.down_tape.backward(context, ddown);
  const BufferId through_query = c.query_tape.backward(context, d.query);
  const BufferId dx = context.activation(rows);
  context.kernel(OpKind::add, {}, "latent and query", {through_latent, through_query}, {dx});
  return dx;
}

}  // namespace

MlaParameters declare_mla(const Context& context, ChunkParameters& parameters, const std::string& layer, Mixer mixer) {
  const LocalSizes& n = context.sizes;
  const MlaSpec& mla = context.scenario.model.mla;
  const auto whole = [&](const char* name, std::int64_t rows) {
    return ParameterPiece{layer + name, rows, n.hidden, 0, 0, rows, n.hidden};
  };
  const auto heads = [&](const char* name, std::int64_t per_head, std::int64_t inputs, int uses) {
    const std::int64_t rows = n.heads * per_head;
    return parameters.declare({.pieces = {{layer + name, rows * n.tp, inputs, rows * n.tp_rank, 0, rows, inputs}}, .uses = uses});
  };
  MlaParameters weights;
  if (mla.q_rank > 0) {
    weights.query_down = parameters.declare(replicated_matrix(context, {whole(".query_down", mla.q_rank)}));
    weights.query_norm = declare_norm(context, parameters, layer + ".query_norm", mla.q_rank);
  }
  weights.query_up = heads(".query_up", mla.qk_dim(), mla.q_rank > 0 ? mla.q_rank : n.hidden, 1);
  weights.latent_down =
      parameters.declare(replicated_matrix(context, {whole(".latent_down", mla.kv_rank), whole(".key_rope", mla.rope_dim)}));
  weights.latent_norm = declare_norm(context, parameters, layer + ".latent_norm", mla.kv_rank);
  const bool is_sparse = context.scenario.model.indexer.enabled();
  weights.latent_up = heads(".latent_up", mla.nope_dim + mla.v_dim, mla.kv_rank,
                            is_sparse ? uses_of_absorbed_weight : key_makings(context, mixer));
  const std::int64_t columns = n.heads * mla.v_dim;
  ParameterSpec output;
  output.pieces = {{layer + ".attention_output", n.hidden, columns * n.tp, 0, columns * n.tp_rank, n.hidden, columns}};
  weights.output = parameters.declare(std::move(output));
  if (is_sparse) weights.indexer = declare_indexer(context, parameters, layer);
  return weights;
}

BufferId mla(Context& context, Tape& tape, const MlaParameters& weights, BufferId x) {
  Compressed compressed = compress(context, weights, x);
  MlaAttended attended = weights.indexer ? attend_chosen(context, weights, x, compressed.latents)
                                         : attend_latents(context, weights, compressed.latents);
  const BufferId out = attended.out;
  tape.push([x, compressed = std::move(compressed), attended = std::move(attended)](Context& c, BufferId dout) {
    return compress_backward(c, compressed, x, attended.backward(c, dout));
  });
  // The heads' outputs lie side by side: the same elements as one row per token.
  const LocalSizes& n = context.sizes;
  const BufferId rows = context.builder.view(out, 0, Shape(n.sequence, n.batch, n.heads * context.scenario.model.mla.v_dim));
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, c.shape_of(out)); });
  return row_parallel(context, tape, weights.output, rows, "attention output");
}

}  // namespace tandem::scenarios
