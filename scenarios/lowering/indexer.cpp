#include "scenarios/lowering/indexer.h"

#include "scenarios/lowering/linear.h"

namespace tandem::scenarios {
namespace {

const NormAttributes norm_of_key{.kind = NormKind::layer};

SplitHeadsAttributes index_rotation(const Context& context) {
  const ModelSpec& model = context.scenario.model;
  return {.heads = static_cast<std::int32_t>(model.indexer.heads),
          .kv_heads = 1,
          .rotate = true,
          .base = static_cast<float>(model.rotary_base),
          .positions = context.sizes.positions,
          .rotated = static_cast<std::int32_t>(model.mla.rope_dim)};
}

/// The rows of all tensor-parallel ranks, kept for the backward.
BufferId all_rows(Context& context, BufferId shard, std::string_view name) {
  if (!context.sizes.sequence_parallel) return shard;
  const BufferId whole = context.activation(context.gathered_shape(shard));
  context.collective(OpKind::all_gather, Slot::tp, Stream::tp, name, shard, whole);
  return whole;
}

}  // namespace

IndexerParameters declare_indexer(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const ModelSpec& model = context.scenario.model;
  const IndexerSpec& spec = model.indexer;
  const auto piece = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return ParameterPiece{layer + name, rows, columns, 0, 0, rows, columns};
  };
  const auto declare = [&](std::vector<ParameterPiece> pieces) {
    ParameterSpec whole = replicated_matrix(context, std::move(pieces));
    if (context.sizes.tp > 1) whole.kind = ParameterKind::by_heads;
    return parameters.declare(std::move(whole));
  };
  const std::int64_t h = context.sizes.hidden;
  IndexerParameters weights;
  weights.query = declare({piece(".index_query", spec.heads * spec.head_dim, model.mla.q_rank > 0 ? model.mla.q_rank : h)});
  weights.key = declare({piece(".index_key", spec.head_dim, h)});
  weights.key_norm =
      declare({piece(".index_key_norm.weight", 1, spec.head_dim), piece(".index_key_norm.bias", 1, spec.head_dim)});
  weights.weight = declare({piece(".index_weight", spec.heads, h)});
  return weights;
}

Indexed index_tokens(Context& context, const IndexerParameters& weights, BufferId x, BufferId query, BufferId key) {
  const IndexerSpec& spec = context.scenario.model.indexer;
  Indexed indexed;
  indexed.x = all_rows(context, x, "index");
  indexed.query = query == x ? indexed.x : all_rows(context, query, "index");
  const Shape rows = context.shape_of(indexed.x);
  const BufferId q = multiply(context, weights.query, indexed.query, "index query");
  indexed.q = context.builder.view(q, 0, Shape(rows[0], rows[1], spec.heads, spec.head_dim));
  indexed.down = multiply(context, weights.key, indexed.x, "index key");
  indexed.key = key;
  const BufferId normed = context.builder.view(key, 0, context.shape_of(indexed.down));
  context.kernel(OpKind::norm, norm_of_key, "index key norm", {indexed.down, context.parameters().weight(weights.key_norm)},
                 {normed});
  context.kernel(OpKind::rotary, index_rotation(context), "index rotary", {}, {}, {indexed.q, key});
  indexed.w = multiply(context, weights.weight, indexed.x, "index weight");
  return indexed;
}

void index_tokens_backward(Context& context, const IndexerParameters& weights, const Indexed& indexed, BufferId dq, BufferId dkey,
                           BufferId dw) {
  const Shape rows = context.shape_of(indexed.x), of_heads = context.shape_of(dq);
  const BufferId x = context.kept(indexed.x), query = context.kept(indexed.query);
  context.kernel(OpKind::rotary_backward, index_rotation(context), "index rotary", {}, {}, {dq, dkey});
  const BufferId dnormed = context.builder.view(dkey, 0, context.shape_of(indexed.down));
  const BufferId ddown = context.activation(context.shape_of(indexed.down));
  const ChunkParameters& parameters = context.parameters();
  context.kernel(OpKind::norm_backward, norm_of_key, "index key norm",
                 {indexed.down, parameters.weight(weights.key_norm), dnormed}, {ddown}, {parameters.gradient(weights.key_norm)});
  context.gave_gradient(weights.key_norm);
  const BufferId dquery = context.builder.view(dq, 0, Shape(rows[0], rows[1], of_heads[2] * of_heads[3]));
  add_weight_gradient(context, weights.query, query, dquery, "index query");
  add_weight_gradient(context, weights.key, x, ddown, "index key");
  add_weight_gradient(context, weights.weight, x, dw, "index weight");
}

}  // namespace tandem::scenarios
