#include "scenarios/lowering/compressed_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/lowering/attention_block.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"
#include "scenarios/mesh/attended_keys.h"

namespace tandem::scenarios {
namespace {

/// Rotation of positions by themselves, with the base of the layer's kind.
MlaHeadsAttributes rotation_of(const Context& context, const CompressedAttentionParameters& weights) {
  const ModelSpec& model = context.scenario.model;
  return {.rope_dim = static_cast<std::int32_t>(model.compressed.rope_dim),
          .base = static_cast<float>(weights.compressor ? model.compressed.rotary_base : model.rotary_base),
          .positions = context.sizes.positions,
          .yarn = weights.compressor ? stretched_angles(model.compressed) : YarnAttributes{}};
}

std::int64_t compressed_keys(const Context& context, const CompressedAttentionParameters& weights) {
  return weights.compressor ? context.sizes.shared() / weights.compressor->ratio : 0;
}

/// Of attention to positions and compressed keys.
SparseAttentionAttributes attention_of(const Context& context, const CompressedAttentionParameters& weights) {
  const ModelSpec& model = context.scenario.model;
  SparseAttentionAttributes attributes = window_and_compressed_keys(model, context.sizes.positions, context.sizes.shared(),
                                                                    weights.compressor ? weights.compressor->ratio : 0);
  const auto width = static_cast<double>(model.head_dim);
  attributes.scale = static_cast<float>(model.attention_scale > 0 ? model.attention_scale : 1 / std::sqrt(width));
  return attributes;
}

/// Of attention's scores of compressed keys alone, or of the indexer's.
SparseAttentionAttributes choice_of(const Context& context, const CompressedAttentionParameters& weights, double scale) {
  const CompressedAttentionSpec& spec = context.scenario.model.compressed;
  const TrainingSpec& training = context.scenario.training;
  const auto tokens = static_cast<double>(training.gradient_batch(context.scenario.parallelism) * training.sequence);
  SparseAttentionAttributes attributes =
      compressed_keys_to_choose(context.sizes.positions, context.sizes.shared(), weights.compressor->ratio);
  attributes.scale = static_cast<float>(scale);
  attributes.coefficient = static_cast<float>(spec.index_loss_coefficient / tokens / static_cast<double>(context.sizes.tp));
  return attributes;
}
SparseAttentionAttributes choice_of_indexer(const Context& context, const CompressedAttentionParameters& weights) {
  const CompressedAttentionSpec& spec = context.scenario.model.compressed;
  return choice_of(context, weights, 1 / std::sqrt(static_cast<double>(spec.index_heads * spec.index_head_dim)));
}

/// What is projected of this rank's rows, and gathered; `x` and `query` where an indexer reads them.
struct Projected {
  BufferId query_up = no_id, key = no_id, pool = no_id, x = no_id, query = no_id;
  Tape of_query, of_key, of_pool;
};

BufferId all_rows_of(Context& context, BufferId shard) {
  return context.sizes.sequence_parallel ? context.gather_sequence(shard, "index") : shard;
}

Projected project(Context& context, const CompressedAttentionParameters& weights, BufferId x) {
  Projected p;
  const BufferId down = replicated_linear(context, p.of_query, weights.query_down, x, "query down");
  const BufferId query = norm(context, p.of_query, weights.query_norm, down, "query norm");
  p.query_up = column_parallel(context, p.of_query, weights.query_up, query, "query up");
  const BufferId key = replicated_linear(context, p.of_key, weights.key, x, "key");
  p.key = context.gather_sequence(norm(context, p.of_key, weights.key_norm, key, "key norm"), "key");
  if (weights.compressor)
    p.pool = context.gather_sequence(replicated_linear(context, p.of_pool, weights.compressor->project, x, "compressor"),
                                     "compressor");
  if (!weights.indexer) return p;
  p.x = all_rows_of(context, x);
  p.query = all_rows_of(context, query);
  return p;
}

// Context-parallel ranks gather the keys of all positions, and what compressed keys are made of, each in the order of the
// sequence.

SequenceAttributes shares_of_sequence(const Context& context) {
  return {.ranks = static_cast<std::int32_t>(context.sizes.cp), .zigzag = context.sizes.zigzag};
}

void gather_positions(Context& context, BufferId mine, BufferId all, std::string_view name) {
  const BufferId parts = context.gathered(context.shape_of(all));
  context.collective(OpKind::all_gather, Slot::context, Stream::cp, name, mine, parts);
  context.kernel(OpKind::join_sequence, shares_of_sequence(context), name, {parts}, {all});
}
BufferId gather_positions(Context& context, BufferId mine, std::string_view name) {
  if (context.sizes.cp == 1) return mine;
  Shape shape = context.shape_of(mine);
  shape.dims[0] = context.sizes.shared();
  const BufferId all = context.activation(shape);
  gather_positions(context, mine, all, name);
  return all;
}

/// The way back adds gradients up, each at its home.
BufferId scatter_positions(Context& context, BufferId dall, std::string_view name) {
  if (context.sizes.cp == 1) return dall;
  Shape shape = context.shape_of(dall);
  const BufferId parts = context.activation(shape);
  context.kernel(OpKind::split_sequence, shares_of_sequence(context), name, {dall}, {parts});
  shape.dims[0] = context.sizes.sequence;
  const BufferId mine = context.activation(shape);
  context.collective(OpKind::reduce_scatter, Slot::context, Stream::cp, name, parts, mine);
  return mine;
}

/// What the indexer made.
struct Choice {
  BufferId q = no_id, keys = no_id, w = no_id, chosen = no_id;
  CompressedKeys compressed;
};

Choice choose(Context& context, const CompressedAttentionParameters& weights, const Projected& p) {
  const CompressedAttentionSpec& spec = context.scenario.model.compressed;
  const LocalSizes& n = context.sizes;
  const std::int64_t keys = compressed_keys(context, weights);
  Choice choice;
  const BufferId up = multiply(context, weights.indexer->query, context.kept(p.query), "index query");
  choice.q = context.activation(Shape(n.sequence, n.batch, spec.index_heads, spec.index_head_dim));
  context.kernel(OpKind::mla_queries, rotation_of(context, weights), "index rotary", {up}, {choice.q});
  const BufferId pool =
      gather_positions(context, multiply(context, weights.indexer->keys.project, context.kept(p.x), "index key"), "gather index");
  choice.keys = context.activation(Shape(keys, n.batch, 1, spec.index_head_dim));
  choice.compressed = compress_keys(context, weights.indexer->keys, pool, choice.keys);
  choice.w = multiply(context, weights.indexer->weight, context.kept(p.x), "index weight");
  choice.chosen = context.activation(Shape(n.batch, n.sequence, std::min(spec.index_top_k, keys)), DType::i32);
  context.kernel(OpKind::index_select, choice_of_indexer(context, weights), "index select", {choice.q, choice.keys, choice.w},
                 {choice.chosen});
  return choice;
}

/// Attention, from queries projected up to the heads' outputs.
struct Core {
  BufferId q = no_id, keys = no_id, chosen = no_id;
  CompressedKeys compressed;
  Choice choice;
  BlockOutput output;
  BufferId turned = no_id;  ///< [s, b, heads * d]
};

/// Of keys of positions, then compressed ones.
BufferId keys_of_positions(Context& context, BufferId keys) {
  Shape shape = context.shape_of(keys);
  shape.dims[0] = context.sizes.shared();
  return context.builder.view(keys, 0, shape);
}
BufferId keys_behind_them(Context& context, BufferId keys) {
  Shape shape = context.shape_of(keys);
  const std::int64_t first = context.sizes.shared();
  const std::int64_t row = shape[1] * shape[2] * shape[3];
  shape.dims[0] -= first;
  return context.builder.view(keys, first * row, shape);
}

std::optional<AttentionSink> sink_of(const Context& context, const CompressedAttentionParameters& weights) {
  if (!weights.sink) return {};
  return AttentionSink{*weights.sink, 0, context.sizes.heads};
}

Core attend_to_keys(Context& context, const CompressedAttentionParameters& weights, const Projected& p) {
  const LocalSizes& n = context.sizes;
  const std::int64_t compressed = compressed_keys(context, weights);
  const MlaHeadsAttributes rotation = rotation_of(context, weights);
  const SparseAttentionAttributes attributes = attention_of(context, weights);
  const Shape heads(n.sequence, n.batch, n.heads, n.head_dim), rows(n.sequence, n.batch, n.heads * n.head_dim);
  Core core;
  const BufferId normed = context.activation(heads);
  context.kernel(OpKind::unit_norm, NormAttributes{}, "head norm", {context.builder.view(p.query_up, 0, heads)}, {normed});
  core.q = context.activation(heads);
  context.kernel(OpKind::mla_queries, rotation, "rotary", {context.builder.view(normed, 0, rows)}, {core.q});
  core.keys = context.activation(Shape(n.shared() + compressed, n.batch, 1, n.head_dim));
  const BufferId all = keys_of_positions(context, core.keys);
  const BufferId mine = n.cp > 1 ? context.activation(Shape(n.sequence, n.batch, 1, n.head_dim)) : all;
  context.kernel(OpKind::mla_queries, rotation, "key rotary", {p.key}, {mine});
  if (n.cp > 1) gather_positions(context, mine, all, "gather keys");
  std::vector<BufferId> listed;
  std::int64_t most = attributes.window;
  if (weights.compressor) {
    core.compressed = compress_keys(context, *weights.compressor, gather_positions(context, p.pool, "gather compressor"),
                                    keys_behind_them(context, core.keys));
    if (weights.indexer) {
      core.choice = choose(context, weights, p);
      listed.push_back(core.choice.chosen);
    }
    most += weights.indexer ? context.shape_of(core.choice.chosen)[2] : compressed;
  }
  core.chosen = context.activation(Shape(n.batch, n.sequence, most), DType::i32);
  context.kernel(OpKind::window_select, attributes, "window select", listed, std::array{core.chosen});
  core.output = {context.activation(heads), context.activation(Shape(n.batch, n.heads, n.sequence), DType::f32)};
  context.kernel(OpKind::sparse_attention, attributes, "sparse attention", {core.q, core.keys, core.chosen},
                 {core.output.out, core.output.lse});
  add_sink(context, sink_of(context, weights), core.output);
  core.turned = context.activation(rows);
  context.kernel(OpKind::mla_queries_backward, rotation, "output rotary", {core.output.out}, {core.turned});
  return core;
}

/// Lets the indexer learn from attention to the keys that it chose. Nothing goes back to what it reads.
void learn_choice(Context& context, const CompressedAttentionParameters& weights, const Projected& p, const Core& core) {
  const Choice& choice = core.choice;
  const auto width = static_cast<double>(context.sizes.head_dim);
  const BufferId target = context.activation(context.shape_of(choice.chosen), DType::f32);
  context.kernel(OpKind::index_target, choice_of(context, weights, 1 / std::sqrt(width)), "index target",
                 {core.q, keys_behind_them(context, core.keys), choice.chosen}, {target});
  if (context.sizes.tp > 1) context.collective(OpKind::all_reduce, Slot::tp, Stream::tp, "index target", target, target);
  const BufferId dq = context.activation(context.shape_of(choice.q)), dkeys = context.activation(context.shape_of(choice.keys));
  const BufferId dw = context.activation(context.shape_of(choice.w));
  context.kernel(OpKind::index_loss_backward, choice_of_indexer(context, weights), "index loss",
                 {choice.q, choice.keys, choice.w, choice.chosen, target}, {dq, dkeys, dw});
  const Shape heads = context.shape_of(dq);
  const BufferId dup = context.activation(Shape(heads[0], heads[1], heads[2] * heads[3]));
  context.kernel(OpKind::mla_queries_backward, rotation_of(context, weights), "index rotary", {dq}, {dup});
  const BufferId dpool = scatter_positions(
      context, compress_keys_backward(context, weights.indexer->keys, choice.compressed, dkeys), "scatter index");
  add_weight_gradient(context, weights.indexer->query, context.kept(p.query), dup, "index query");
  add_weight_gradient(context, weights.indexer->keys.project, context.kept(p.x), dpool, "index key");
  add_weight_gradient(context, weights.indexer->weight, context.kept(p.x), dw, "index weight");
}

BufferId sum_of_paths(Context& context, BufferId a, BufferId b) {
  const BufferId sum = context.activation(context.shape_of(a));
  context.kernel(OpKind::add, {}, "query and key", {a, b}, {sum});
  return sum;
}

/// Returns the gradient of x, from that of the heads' outputs turned back.
BufferId core_backward(Context& context, const CompressedAttentionParameters& weights, const Projected& p, const Core& core,
                       BufferId dturned) {
  const MlaHeadsAttributes rotation = rotation_of(context, weights);
  const Shape heads = context.shape_of(core.q), rows = context.shape_of(core.turned);
  const auto as_heads = [&](BufferId of_rows) { return context.builder.view(of_rows, 0, heads); };
  const BufferId dout = context.activation(heads);
  context.kernel(OpKind::mla_queries, rotation, "output rotary", {dturned}, {dout});
  add_sink_backward(context, sink_of(context, weights), core.output, dout);
  const BufferId dq = context.activation(heads), dkeys = context.activation(context.shape_of(core.keys));
  context.kernel(OpKind::sparse_attention_backward, attention_of(context, weights), "sparse attention",
                 {core.q, core.keys, core.chosen, core.output.out, core.output.lse, dout}, {dq, dkeys});
  if (weights.indexer) learn_choice(context, weights, p, core);
  const BufferId dnormed = context.activation(rows), dup = context.activation(rows);
  context.kernel(OpKind::mla_queries_backward, rotation, "rotary", {dq}, {dnormed});
  context.kernel(OpKind::unit_norm_backward, NormAttributes{}, "head norm", {as_heads(p.query_up), as_heads(dnormed)},
                 {as_heads(dup)});
  const BufferId through_query = p.of_query.backward(context, dup);
  const BufferId dkey = context.activation(context.shape_of(p.key));
  context.kernel(OpKind::mla_queries_backward, rotation, "key rotary",
                 {scatter_positions(context, keys_of_positions(context, dkeys), "scatter keys")}, {dkey});
  const BufferId through_key = p.of_key.backward(context, context.reduce_partial(dkey, "key"));
  const BufferId dx = sum_of_paths(context, through_query, through_key);
  if (!weights.compressor) return dx;
  const BufferId dpool = scatter_positions(
      context, compress_keys_backward(context, *weights.compressor, core.compressed, keys_behind_them(context, dkeys)),
      "scatter compressor");
  return sum_of_paths(context, dx, p.of_pool.backward(context, context.reduce_partial(dpool, "compressor")));
}

HeadGemmAttributes group_product(const Context& context) {
  return {.head_rows = static_cast<std::int32_t>(context.scenario.model.compressed.output_rank)};
}

/// From the heads' outputs, by groups of heads, to the layer's.
BufferId project_out(Context& context, Tape& tape, const CompressedAttentionParameters& weights, BufferId turned) {
  const CompressedAttentionSpec& spec = context.scenario.model.compressed;
  const Shape rows = context.shape_of(turned);
  const std::int64_t groups = spec.output_groups / context.sizes.tp;
  const Shape by_group(rows[0], rows[1], groups, rows[2] / groups), down(rows[0], rows[1], groups, spec.output_rank);
  const BufferId x = context.builder.view(turned, 0, by_group), y = context.activation(down);
  HeadGemmAttributes forward = group_product(context);
  forward.transpose_b = true;
  context.kernel(OpKind::head_gemm, forward, "output down", {x, context.parameters().weight(weights.output_down)}, {y});
  tape.push([=](Context& c, BufferId drows) {
    const BufferId dy = c.builder.view(drows, 0, down), dx = c.activation(by_group);
    HeadGemmAttributes of_weight = group_product(c);
    of_weight.transpose_a = true;
    c.kernel(OpKind::head_gemm, group_product(c), "output down", {dy, c.parameters().weight(weights.output_down)}, {dx});
    // At once, as the weights of latent attention by heads.
    c.kernel(OpKind::head_gemm, of_weight, "output down", {dy, c.builder.view(turned, 0, by_group)}, {},
             {c.parameters().gradient(weights.output_down)});
    c.issue([&c, weight = weights.output_down] { c.gave_gradient(weight); });
    return c.builder.view(dx, 0, rows);
  });
  const BufferId joined = context.builder.view(y, 0, Shape(rows[0], rows[1], groups * spec.output_rank));
  return row_parallel(context, tape, weights.output, joined, "attention output");
}

}  // namespace

CompressedAttentionParameters declare_compressed_attention(const Context& context, ChunkParameters& parameters,
                                                           const std::string& layer, Mixer mixer) {
  const LocalSizes& n = context.sizes;
  const ModelSpec& model = context.scenario.model;
  const CompressedAttentionSpec& spec = model.compressed;
  const auto whole = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return replicated_matrix(context, {{layer + name, rows, columns, 0, 0, rows, columns}});
  };
  const auto learnt = [&](ParameterSpec of_indexer) {
    if (n.tp > 1) of_indexer.kind = ParameterKind::by_heads;
    return parameters.declare(std::move(of_indexer));
  };
  const auto split = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return parameters.declare({.pieces = {{layer + name, rows * n.tp, columns, rows * n.tp_rank, 0, rows, columns}}});
  };
  CompressedAttentionParameters weights;
  weights.query_down = parameters.declare(whole(".query_down", spec.q_rank, n.hidden));
  weights.query_norm = declare_norm(context, parameters, layer + ".query_norm", spec.q_rank);
  weights.query_up = split(".query_up", n.heads * n.head_dim, spec.q_rank);
  weights.key = parameters.declare(whole(".key", n.head_dim, n.hidden));
  weights.key_norm = declare_norm(context, parameters, layer + ".key_norm", n.head_dim);
  const bool sparse = mixer == Mixer::compressed_sparse_attention;
  if (mixer != Mixer::sliding_attention)
    weights.compressor = declare_key_compressor(
        context, parameters, layer + ".compress",
        {.ratio = sparse ? spec.sparse_ratio : spec.heavy_ratio, .width = n.head_dim, .overlap = sparse}, false);
  if (sparse)
    weights.indexer = CompressedIndexer{
        learnt(whole(".index_query", spec.index_heads * spec.index_head_dim, spec.q_rank)),
        learnt(whole(".index_weight", spec.index_heads, n.hidden)),
        declare_key_compressor(context, parameters, layer + ".index_compress",
                               {.ratio = spec.sparse_ratio, .width = spec.index_head_dim, .overlap = true}, true)};
  const std::int64_t groups = spec.output_groups / n.tp, columns = groups * spec.output_rank;
  weights.output_down = split(".output_down", columns, n.heads / groups * n.head_dim);
  weights.output = parameters.declare(
      {.pieces = {{layer + ".attention_output", n.hidden, columns * n.tp, 0, columns * n.tp_rank, n.hidden, columns}}});
  if (model.attention_sinks)
    weights.sink = parameters.declare({.pieces = {{layer + ".sink.bias", model.heads, 1, n.heads * n.tp_rank, 0, n.heads, 1}}});
  return weights;
}

BufferId compressed_attention(Context& context, Tape& tape, const CompressedAttentionParameters& weights, BufferId x) {
  const Projected projected = project(context, weights, x);
  const Core core = attend_to_keys(context, weights, projected);
  tape.push([=](Context& c, BufferId dturned) {
    const Phase before = c.phase;
    c.phase = c.recompute().attention ? Phase::recompute : before;
    const Core again = c.recompute().attention ? attend_to_keys(c, weights, projected) : core;
    c.phase = before;
    return core_backward(c, weights, projected, again, dturned);
  });
  return project_out(context, tape, weights, core.turned);
}

}  // namespace tandem::scenarios
