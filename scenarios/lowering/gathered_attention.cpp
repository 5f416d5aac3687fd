#include "scenarios/lowering/gathered_attention.h"

#include "scenarios/lowering/attention_block.h"
#include "scenarios/mesh/positions.h"

namespace tandem::scenarios {
namespace {

SequenceAttributes sequence_attributes(const Context& context) {
  return {.ranks = static_cast<std::int32_t>(context.sizes.cp), .zigzag = context.sizes.zigzag};
}

Block all_keys(const Context& context) { return {context.sizes.positions, whole_run(context.sizes.shared())}; }

Attending gathered_backward(Context& context, const Attending& mine, const KeyMaking& making, const BlockOutput& output,
                            BufferId dout) {
  const PassedKeys all = gather_keys(context, mine.keys);
  const Block block = all_keys(context);
  add_sink_backward(context, mine.sink, output, dout);
  const Heads heads = make_again(context, making, mine.q, all, block.keys);
  const Heads d = attend_block_backward(context, heads, block, output, dout);
  const PassedKeys dall = making.gradient(context, all, d, block.keys);
  return {d.q, scatter_key_gradients(context, dall, mine.keys)};
}

}  // namespace

PassedKeys gather_keys(Context& context, const PassedKeys& mine) {
  const Shape whole(context.sizes.cp * context.shape_of(mine.both).elements());
  const BufferId parts = context.gathered(whole);
  context.collective(OpKind::all_gather, Slot::context, Stream::cp, "gather kv", mine.both, parts);
  const PassedKeys all = passed_in(context, context.activation(whole), mine, context.sizes.cp);
  context.kernel(OpKind::join_sequence, sequence_attributes(context), "gather kv", {parts}, {all.first, all.second});
  return all;
}

PassedKeys scatter_key_gradients(Context& context, const PassedKeys& dall, const PassedKeys& mine) {
  const BufferId parts = context.activation(context.shape_of(dall.both));
  context.kernel(OpKind::split_sequence, sequence_attributes(context), "scatter dkv", {dall.first, dall.second}, {parts});
  const BufferId dkeys = context.activation(context.shape_of(mine.both));
  context.collective(OpKind::reduce_scatter, Slot::context, Stream::cp, "scatter dkv", parts, dkeys);
  return passed_in(context, dkeys, mine);
}

AttendedAcross gathered_attention(Context& context, const Attending& mine, const KeyMaking& making) {
  const Block block = all_keys(context);
  const BlockOutput output =
      attend_block(context, making.heads(context, mine.q, gather_keys(context, mine.keys), block.keys), block);
  add_sink(context, mine.sink, output);
  return {output.out,
          [=](Context& c, const Attending& m, BufferId dout) { return gathered_backward(c, m, making, output, dout); }};
}

}  // namespace tandem::scenarios
