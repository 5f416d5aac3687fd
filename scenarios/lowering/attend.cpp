#include "scenarios/lowering/attend.h"

#include "scenarios/lowering/attention_block.h"
#include "scenarios/lowering/gathered_attention.h"
#include "scenarios/lowering/ring_attention.h"
#include "scenarios/lowering/ulysses_attention.h"

namespace tandem {

Heads with_keys(Context& context, const Heads& heads, BufferId kv) {
  const Shape k = context.shape_of(heads.k), v = context.shape_of(heads.v);
  return {.q = heads.q, .k = context.builder.view(kv, 0, k), .v = context.builder.view(kv, k.elements(), v), .kv = kv};
}

Heads make_heads(Context& context, const Shape& q, const Shape& k, const Shape& v) {
  Heads heads{.q = context.activation(q), .kv = context.activation(Shape(k.elements() + v.elements()))};
  heads.k = context.builder.view(heads.kv, 0, k);
  heads.v = context.builder.view(heads.kv, k.elements(), v);
  return heads;
}

Heads make_like(Context& context, const Heads& heads) {
  return make_heads(context, context.shape_of(heads.q), context.shape_of(heads.k), context.shape_of(heads.v));
}

Attended attend(Context& context, const Heads& heads) {
  if (context.sizes.cp == 1) return whole_attention(context, heads);
  switch (context.scenario.parallelism.cp_method) {
    case CpMethod::all_gather:
      return gathered_attention(context, heads);
    case CpMethod::ulysses:
      return ulysses_attention(context, heads);
    default:
      return ring_attention(context, heads);
  }
}

}  // namespace tandem
