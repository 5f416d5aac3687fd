#include "scenarios/lowering/attention_block.h"

#include <cmath>

#include "scenarios/lowering/positions.h"

namespace tandem::scenarios {
namespace {

AttentionAttributes attributes_of(const Context& context, const Heads& heads, const Block& block) {
  const auto head_dim = static_cast<float>(context.shape_of(heads.q)[3]);
  return {.causal = true, .scale = 1.0F / std::sqrt(head_dim), .queries = block.queries, .keys = block.keys};
}

}  // namespace

BlockOutput attend_block(Context& context, const Heads& heads, const Block& block) {
  const Shape q = context.shape_of(heads.q);
  const BlockOutput output{context.activation(Shape(q[0], q[1], q[2], context.shape_of(heads.v)[3])),
                           context.activation(Shape(q[1], q[2], q[0]), DType::f32)};
  context.kernel(OpKind::attention, attributes_of(context, heads, block), "attention", {heads.q, heads.k, heads.v},
                 {output.out, output.lse});
  return output;
}

Heads attend_block_backward(Context& context, const Heads& heads, const Block& block, const BlockOutput& output, BufferId dout) {
  const Heads d = make_like(context, heads);
  context.kernel(OpKind::attention_backward, attributes_of(context, heads, block), "attention",
                 {heads.q, heads.k, heads.v, output.out, output.lse, dout}, {d.q, d.k, d.v});
  return d;
}

void merge_outputs(Context& context, const BlockOutput& part, const BlockOutput& into) {
  context.kernel(OpKind::attention_merge, {}, "attention merge", {part.out, part.lse}, {}, {into.out, into.lse});
}

Attended whole_attention(Context& context, const Heads& heads) {
  const Block block{whole_sequence(context.scenario), whole_sequence(context.scenario)};
  const BlockOutput output = attend_block(context, heads, block);
  return {output.out,
          [=](Context& c, const Heads& h, BufferId dout) { return attend_block_backward(c, h, block, output, dout); }};
}

}  // namespace tandem::scenarios
