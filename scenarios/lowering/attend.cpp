#include "scenarios/lowering/attend.h"

#include "scenarios/lowering/attention_block.h"
#include "scenarios/lowering/passed_keys.h"
#include "scenarios/lowering/ulysses_attention.h"
#include "scenarios/lowering/ulysses_ring_attention.h"

namespace tandem::scenarios {

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
  if (!passes_keys(context))
    return context.sizes.ring > 1 ? ulysses_ring_attention(context, heads) : ulysses_attention(context, heads);
  const auto attending = [](const Heads& h) { return Attending{h.q, {h.k, h.v, h.kv}, h.sink}; };
  const AttendedAcross attended = attend_across(context, attending(heads), as_they_are());
  return {attended.out, [=](Context& c, const Heads& h, BufferId dout) {
            const Attending d = attended.backward(c, attending(h), dout);
            return Heads{.q = d.q, .k = d.keys.first, .v = d.keys.second, .kv = d.keys.both};
          }};
}

}  // namespace tandem::scenarios
