#include "scenarios/lowering/passed_keys.h"

#include "scenarios/lowering/gathered_attention.h"
#include "scenarios/lowering/ring_attention.h"

namespace tandem::scenarios {

PassedKeys passed_in(Context& context, BufferId both, const Shape& first, const Shape& second) {
  return {context.builder.view(both, 0, first), context.builder.view(both, first.elements(), second), both};
}

PassedKeys passed_in(Context& context, BufferId both, const PassedKeys& like, std::int64_t times) {
  const auto longer = [&](BufferId part) {
    Shape shape = context.shape_of(part);
    shape.dims[0] *= times;
    return shape;
  };
  return passed_in(context, both, longer(like.first), longer(like.second));
}

KeyMaking as_they_are() {
  return {.heads = [](Context&, BufferId q, const PassedKeys& passed,
                      const Positions&) { return Heads{.q = q, .k = passed.first, .v = passed.second, .kv = passed.both}; },
          .gradient = [](Context&, const PassedKeys&, const Heads& d,
                         const Positions&) { return PassedKeys{.first = d.k, .second = d.v, .both = d.kv}; }};
}

Heads make_again(Context& context, const KeyMaking& making, BufferId q, const PassedKeys& passed, const Positions& positions) {
  const Phase before = context.phase;
  context.phase = Phase::recompute;
  const Heads heads = making.heads(context, q, passed, positions);
  context.phase = before;
  return heads;
}

bool passes_keys(const Context& context) { return context.sizes.cp > 1 && context.scenario.parallelism.heads_ranks() == 1; }

int key_makings(const Context& context, Mixer mixer) {
  return passes_keys(context) && context.scenario.parallelism.cp_method == CpMethod::ring ? visible_blocks(context, mixer) : 1;
}

AttendedAcross attend_across(Context& context, const Attending& mine, const KeyMaking& making) {
  return context.scenario.parallelism.cp_method == CpMethod::ring ? ring_attention(context, mine, making)
                                                                  : gathered_attention(context, mine, making);
}

}  // namespace tandem::scenarios
