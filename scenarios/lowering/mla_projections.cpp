#include "scenarios/lowering/mla_projections.h"

#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"

namespace tandem::scenarios {

MlaHeadsAttributes mla_heads_attributes(Context& context, const Positions& positions) {
  const ModelSpec& model = context.scenario.model;
  return {.rope_dim = static_cast<std::int32_t>(model.mla.rope_dim),
          .base = static_cast<float>(model.rotary_base),
          .positions = positions,
          .documents = documents(context)};
}

Queries project_queries(Context& context, const MlaParameters& weights, BufferId query) {
  Queries q;
  q.up = column_parallel(context, q.tape, weights.query_up, query, "query up");
  return q;
}

BufferId split_queries(Context& context, const Queries& queries) {
  const LocalSizes& n = context.sizes;
  const BufferId q = context.activation(Shape(n.sequence, n.batch, n.heads, context.scenario.model.mla.qk_dim()));
  context.kernel(OpKind::mla_queries, mla_heads_attributes(context, n.positions), "rotary", {queries.up}, {q});
  return q;
}

BufferId queries_backward(Context& context, const Queries& queries, BufferId dq) {
  const BufferId dup = context.activation(context.shape_of(queries.up));
  context.kernel(OpKind::mla_queries_backward, mla_heads_attributes(context, context.sizes.positions), "rotary", {dq}, {dup});
  return queries.tape.backward(context, dup);
}

PassedKeys gather_latents(Context& context, const PassedKeys& shard) {
  if (!context.sizes.sequence_parallel) return shard;
  const std::int64_t tp = context.sizes.tp;
  const PassedKeys whole = passed_in(context, context.gathered(Shape(tp * context.shape_of(shard.both).elements())), shard, tp);
  context.collective(OpKind::all_gather, Slot::tp, Stream::tp, "latent", shard.first, whole.first);
  context.collective(OpKind::all_gather, Slot::tp, Stream::tp, "key rope", shard.second, whole.second);
  return whole;
}

}  // namespace tandem::scenarios
