#include "scenarios/lowering/sparse_attention.h"

#include <algorithm>
#include <cmath>

#include "scenarios/lowering/gathered_attention.h"
#include "scenarios/lowering/mla_projections.h"
#include "scenarios/mesh/attended_keys.h"

namespace tandem::scenarios {
namespace {

BufferId as_heads(Context& context, std::int64_t heads, std::int64_t width) {
  return context.activation(Shape(context.sizes.sequence, context.sizes.batch, heads, width));
}

// The two parts of a head's projection up: what makes its key, and what makes its value.

HeadGemmAttributes key_part(const Context& context) {
  const MlaSpec& mla = context.scenario.model.mla;
  return {.head_rows = static_cast<std::int32_t>(mla.nope_dim + mla.v_dim)};
}
HeadGemmAttributes value_part(const Context& context) {
  HeadGemmAttributes part = key_part(context);
  part.first_row = static_cast<std::int32_t>(context.scenario.model.mla.nope_dim);
  return part;
}

BufferId head_product(Context& context, HeadGemmAttributes part, bool up, ParameterId weight, BufferId x, std::string_view name) {
  const MlaSpec& mla = context.scenario.model.mla;
  part.transpose_b = up;
  const std::int64_t rows = part.first_row > 0 ? mla.v_dim : mla.nope_dim;
  const BufferId y = as_heads(context, context.sizes.heads, up ? rows : mla.kv_rank);
  context.kernel(OpKind::head_gemm, part, name, {x, context.parameters().weight(weight)}, {y});
  return y;
}

/// At once, also where a schedule puts weights off: what it reads, heads times as wide as the latents, is too much to keep, and
/// Megatron-Core puts off linear layers alone.
void head_weight_gradient(Context& context, HeadGemmAttributes part, ParameterId weight, BufferId rows, BufferId latents,
                          std::string_view name) {
  part.transpose_a = true;
  context.kernel(OpKind::head_gemm, part, name, {rows, latents}, {}, {context.parameters().gradient(weight)});
  context.issue([&context, weight] { context.gave_gradient(weight); });
}

/// What attention is made of, before any key is chosen.
struct Absorbed {
  Queries queries;
  BufferId nope = no_id;  ///< [s, b, heads, nope]
  BufferId q = no_id;     ///< [s, b, heads, kv_rank + rope]
};

Absorbed absorb_queries(Context& context, const MlaParameters& weights, BufferId query) {
  const MlaSpec& mla = context.scenario.model.mla;
  const std::int64_t heads = context.sizes.heads;
  Absorbed a{.queries = project_queries(context, weights, query)};
  const BufferId rotated = split_queries(context, a.queries);
  a.nope = as_heads(context, heads, mla.nope_dim);
  const BufferId rope = as_heads(context, heads, mla.rope_dim);
  context.kernel(OpKind::split_columns, {}, "query split", {rotated}, {a.nope, rope});
  const BufferId absorbed = head_product(context, key_part(context), false, weights.latent_up, a.nope, "query absorb");
  a.q = as_heads(context, heads, mla.kv_rank + mla.rope_dim);
  context.kernel(OpKind::join_columns, {}, "query join", {absorbed, rope}, {a.q});
  return a;
}

/// Returns the gradient of what the queries were projected up from.
BufferId absorb_backward(Context& context, const MlaParameters& weights, const Absorbed& a, BufferId dq) {
  const MlaSpec& mla = context.scenario.model.mla;
  const std::int64_t heads = context.sizes.heads;
  const BufferId dabsorbed = as_heads(context, heads, mla.kv_rank), drope = as_heads(context, heads, mla.rope_dim);
  context.kernel(OpKind::split_columns, {}, "query join", {dq}, {dabsorbed, drope});
  const BufferId dnope = head_product(context, key_part(context), true, weights.latent_up, dabsorbed, "query absorb");
  head_weight_gradient(context, key_part(context), weights.latent_up, a.nope, dabsorbed, "query absorb");
  const BufferId drotated = as_heads(context, heads, mla.qk_dim());
  context.kernel(OpKind::join_columns, {}, "query split", {dnope, drope}, {drotated});
  return queries_backward(context, a.queries, drotated);
}

SparseAttentionAttributes sparse_attributes(const Context& context, double scale) {
  SparseAttentionAttributes attributes = keys_to_choose(context.sizes.positions, context.sizes.shared());
  attributes.scale = static_cast<float>(scale);
  return attributes;
}
SparseAttentionAttributes of_attention(const Context& context) {
  SparseAttentionAttributes attributes =
      sparse_attributes(context, 1 / std::sqrt(static_cast<double>(context.scenario.model.mla.qk_dim())));
  attributes.all_keys = !context.scenario.model.indexer.sparse_loss;
  return attributes;
}
SparseAttentionAttributes of_indexer(const Context& context) {
  const IndexerSpec& spec = context.scenario.model.indexer;
  const TrainingSpec& training = context.scenario.training;
  SparseAttentionAttributes attributes =
      sparse_attributes(context, 1 / std::sqrt(static_cast<double>(spec.heads * spec.head_dim)));
  const auto tokens = static_cast<double>(training.gradient_batch(context.scenario.parallelism) * training.sequence);
  attributes.all_keys = !spec.sparse_loss;
  attributes.coefficient = static_cast<float>(spec.loss_coefficient / tokens / static_cast<double>(context.sizes.tp));
  return attributes;
}

/// Attention of the queries to the keys that were chosen for them.
struct Sparse {
  Indexed indexed;
  PassedKeys mine, all;  ///< keys of attention, and of the indexer: this rank's, and those of the whole sequence
  BufferId chosen = no_id, latent_out = no_id, lse = no_id;
};

Sparse attend_sparsely(Context& context, const MlaParameters& weights, BufferId x, BufferId query, BufferId q,
                       const PassedKeys& latents) {
  const ModelSpec& model = context.scenario.model;
  const LocalSizes& n = context.sizes;
  const std::int64_t width = model.mla.kv_rank + model.mla.rope_dim;
  Sparse s;
  const Shape key(n.sequence, n.batch, 1, width), index(n.sequence, n.batch, 1, model.indexer.head_dim);
  s.mine = passed_in(context, context.activation(Shape(key.elements() + index.elements())), key, index);
  const BufferId rope = as_heads(context, 1, model.mla.rope_dim);
  context.kernel(OpKind::mla_queries, mla_heads_attributes(context, n.positions), "key rotary", {latents.second}, {rope});
  context.kernel(OpKind::join_columns, {}, "key join", {latents.first, rope}, {s.mine.first});
  s.indexed = index_tokens(context, *weights.indexer, x, query, s.mine.second);
  s.all = n.cp > 1 ? gather_keys(context, s.mine) : s.mine;
  const std::int64_t sequence = context.scenario.training.sequence;
  s.chosen = context.activation(Shape(n.batch, n.sequence, std::min(model.indexer.top_k, sequence)), DType::i32);
  context.kernel(OpKind::index_select, of_indexer(context), "index select", {s.indexed.q, s.all.second, s.indexed.w}, {s.chosen});
  s.latent_out = as_heads(context, n.heads, model.mla.kv_rank);
  s.lse = context.activation(Shape(n.batch, n.heads, n.sequence), DType::f32);
  context.kernel(OpKind::sparse_attention, of_attention(context), "sparse attention", {q, s.all.first, s.chosen},
                 {s.latent_out, s.lse});
  return s;
}

/// The gradients of the indexer's queries, keys and weights.
struct IndexGradients {
  BufferId dq = no_id, dw = no_id;
};
IndexGradients learn(Context& context, const Sparse& s, BufferId q, BufferId dkeys) {
  const IndexerSpec& spec = context.scenario.model.indexer;
  Shape shape = context.shape_of(s.chosen);
  if (!spec.sparse_loss) shape.dims[2] = context.scenario.training.sequence;
  const BufferId target = context.activation(shape, DType::f32);
  context.kernel(OpKind::index_target, of_attention(context), "index target", {q, s.all.first, s.chosen}, {target});
  if (context.sizes.tp > 1) context.collective(OpKind::all_reduce, Slot::tp, Stream::tp, "index target", target, target);
  const IndexGradients d{context.activation(context.shape_of(s.indexed.q)), context.activation(context.shape_of(s.indexed.w))};
  context.kernel(OpKind::index_loss_backward, of_indexer(context), "index loss",
                 {s.indexed.q, s.all.second, s.indexed.w, s.chosen, target}, {d.dq, dkeys, d.dw});
  return d;
}

/// Returns the gradients of q, and of the latents of all positions of this rank, by its heads.
Attending sparse_backward(Context& context, const MlaParameters& weights, const Sparse& s, BufferId q, BufferId dlatent_out) {
  const MlaSpec& mla = context.scenario.model.mla;
  const LocalSizes& n = context.sizes;
  const BufferId dq = context.activation(context.shape_of(q));
  const PassedKeys dall = passed_in(context, context.activation(context.shape_of(s.all.both)), s.all);
  context.kernel(OpKind::sparse_attention_backward, of_attention(context), "sparse attention",
                 {q, s.all.first, s.chosen, s.latent_out, s.lse, dlatent_out}, {dq, dall.first});
  const IndexGradients dindex = learn(context, s, q, dall.second);
  const PassedKeys dmine = n.cp > 1 ? scatter_key_gradients(context, dall, s.mine) : dall;
  index_tokens_backward(context, *weights.indexer, s.indexed, dindex.dq, dmine.second, dindex.dw);
  const Shape rows = Shape(n.sequence, n.batch, mla.kv_rank), of_rope(n.sequence, n.batch, mla.rope_dim);
  const PassedKeys dlatents{.first = context.activation(rows), .second = context.activation(of_rope)};
  const BufferId drotated = as_heads(context, 1, mla.rope_dim);
  context.kernel(OpKind::split_columns, {}, "key join", {dmine.first}, {dlatents.first, drotated});
  context.kernel(OpKind::mla_queries_backward, mla_heads_attributes(context, n.positions), "key rotary", {drotated},
                 {dlatents.second});
  return {.q = dq, .keys = dlatents};
}

}  // namespace

MlaAttended attend_chosen(Context& context, const MlaParameters& weights, BufferId x, const Latents& latents) {
  const Absorbed absorbed = absorb_queries(context, weights, latents.query);
  const PassedKeys keys = gather_latents(context, latents.keys);
  const Sparse sparse = attend_sparsely(context, weights, x, latents.query, absorbed.q, keys);
  const BufferId out = head_product(context, value_part(context), true, weights.latent_up, sparse.latent_out, "value up");
  return {out, [=](Context& c, BufferId dout) {
            const bool up_again = c.recompute().mla_up, attention_again = c.recompute().attention;
            const Phase before = c.phase;
            c.phase = Phase::recompute;
            const Absorbed a = up_again ? absorb_queries(c, weights, c.kept(latents.query)) : absorbed;
            const Sparse s = attention_again ? attend_sparsely(c, weights, c.kept(x), c.kept(latents.query), a.q,
                                                               gather_latents(c, latents.keys))
                                             : sparse;
            c.phase = before;
            const BufferId dlatent_out = head_product(c, value_part(c), false, weights.latent_up, dout, "value up");
            head_weight_gradient(c, value_part(c), weights.latent_up, dout, s.latent_out, "value up");
            const Attending d = sparse_backward(c, weights, s, a.q, dlatent_out);
            const PassedKeys dkeys{.first = c.reduce_partial(d.keys.first, "latent"),
                                   .second = c.reduce_partial(d.keys.second, "key rope")};
            return Latents{absorb_backward(c, weights, a, d.q), dkeys};
          }};
}

}  // namespace tandem::scenarios
