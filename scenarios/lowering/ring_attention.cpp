#include "scenarios/lowering/ring_attention.h"

#include "scenarios/lowering/attention_block.h"

namespace tandem::scenarios {
namespace {

Block block_at(const Context& context, std::int64_t hop) {
  const LocalSizes& n = context.sizes;
  return block_after(hop, n.shared(), n.zigzag, n.ring_rank, n.ring);
}

void send(Context& context, BufferId data, std::string_view name) {
  context.collective(OpKind::send, Slot::send_context, Stream::cp, name, data, no_id);
}

/// It is posted when the work lowered so far is done, which frees the block before the one at hand: two buffers suffice.
BufferId receive(Context& context, const Shape& shape, std::string_view name) {
  const BufferId data = context.gathered(shape);
  context.issue([&context, data, name = std::string(name)] {
    const TaskId task = context.collective(OpKind::receive, Slot::receive_context, Stream::cp_receive, name, no_id, data);
    context.start_after_compute(task);
  });
  return data;
}

/// Sends the block at hand on and returns the next, unless this is the last.
PassedKeys next_keys(Context& context, const PassedKeys& keys, std::int64_t hop) {
  if (hop + 1 == context.sizes.ring) return {};
  send(context, keys.both, "ring kv");
  return passed_in(context, receive(context, context.shape_of(keys.both), "ring kv"), keys);
}

void add_to(Context& context, BufferId sum, BufferId term) {
  context.kernel(OpKind::add, {}, "ring gradients", {sum, term}, {sum});
}

Attending ring_backward(Context& context, const Attending& mine, const KeyMaking& making, const BlockOutput& output,
                        BufferId dout) {
  const Shape shape = context.shape_of(mine.keys.both);
  PassedKeys keys = mine.keys;
  BufferId dq = no_id;
  add_sink_backward(context, mine.sink, output, dout);
  for (std::int64_t hop = 0; hop < context.sizes.ring; ++hop) {
    BufferId dkeys = hop == 0 ? no_id : receive(context, shape, "ring dkv");
    const PassedKeys next = next_keys(context, keys, hop);
    const Block block = block_at(context, hop);
    if (sees_any(context, mixer_of_layer(context), block)) {
      const Heads heads = make_again(context, making, mine.q, keys, block.keys);
      const Heads share = attend_block_backward(context, heads, block, output, dout);
      const BufferId dkeys_share = making.gradient(context, keys, share, block.keys).both;
      if (hop > 0) add_to(context, dq, share.q);
      if (hop > 0) add_to(context, dkeys_share, dkeys);
      if (hop == 0) dq = share.q;
      dkeys = dkeys_share;
    }
    send(context, dkeys, "ring dkv");
    keys = next;
  }
  return {dq, passed_in(context, receive(context, shape, "ring dkv"), mine.keys)};
}

}  // namespace

AttendedAcross ring_attention(Context& context, const Attending& mine, const KeyMaking& making) {
  PassedKeys keys = mine.keys;
  BlockOutput output;
  for (std::int64_t hop = 0; hop < context.sizes.ring; ++hop) {
    const PassedKeys next = next_keys(context, keys, hop);
    const Block block = block_at(context, hop);
    if (sees_any(context, mixer_of_layer(context), block)) {
      const BlockOutput part = attend_block(context, making.heads(context, mine.q, keys, block.keys), block);
      if (hop == 0) output = part;
      if (hop > 0) merge_outputs(context, part, output);
    }
    keys = next;
  }
  add_sink(context, mine.sink, output);
  return {output.out, [=](Context& c, const Attending& m, BufferId dout) { return ring_backward(c, m, making, output, dout); }};
}

int visible_blocks(const Context& context, Mixer mixer) {
  int count = 0;
  for (std::int64_t hop = 0; hop < context.sizes.ring; ++hop) count += sees_any(context, mixer, block_at(context, hop)) ? 1 : 0;
  return count;
}

}  // namespace tandem::scenarios
