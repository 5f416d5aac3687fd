#include "scenarios/lowering/ring_attention.h"

#include "runtime/ops/attention.h"
#include "scenarios/lowering/attention_block.h"
#include "scenarios/lowering/positions.h"

namespace tandem {
namespace {

/// After `hop` hops a rank holds what the rank so many places before it sent out.
Block block_at(const Context& context, std::int64_t hop) {
  const LocalSizes& n = context.sizes;
  return {n.positions, positions_of(context.scenario, (n.cp_rank - hop + n.cp) % n.cp)};
}

bool visible(const Block& block) { return causal_pairs(block.queries, block.keys) > 0; }

void send(Context& context, BufferId data, std::string_view name) {
  context.collective(OpKind::send, Slot::send_context, Stream::cp, name, data, no_id);
}

/// It is posted when the work lowered so far is done, which frees the block before the one at hand: two buffers suffice.
BufferId receive(Context& context, const Shape& shape, std::string_view name) {
  const BufferId data = context.gathered(shape);
  const TaskId task = context.collective(OpKind::receive, Slot::receive_context, Stream::cp_receive, name, no_id, data);
  context.builder.depend(context.builder.last_on(context.rank, Stream::compute), task);
  return data;
}

/// Sends the block at hand on and returns the next, unless this is the last.
BufferId next_keys(Context& context, BufferId kv, std::int64_t hop) {
  if (hop + 1 == context.sizes.cp) return no_id;
  send(context, kv, "ring kv");
  return receive(context, context.shape_of(kv), "ring kv");
}

void add_to(Context& context, BufferId sum, BufferId term) {
  context.kernel(OpKind::add, {}, "ring gradients", {sum, term}, {sum});
}

Heads backward(Context& context, const Heads& heads, const BlockOutput& output, BufferId dout) {
  const Shape kv_shape = context.shape_of(heads.kv);
  BufferId kv = heads.kv, dq = no_id;
  for (std::int64_t hop = 0; hop < context.sizes.cp; ++hop) {
    BufferId dkv = hop == 0 ? no_id : receive(context, kv_shape, "ring dkv");
    const BufferId next = next_keys(context, kv, hop);
    const Block block = block_at(context, hop);
    if (visible(block)) {
      const Heads share = attend_block_backward(context, with_keys(context, heads, kv), block, output, dout);
      if (hop > 0) add_to(context, dq, share.q);
      if (hop > 0) add_to(context, share.kv, dkv);
      if (hop == 0) dq = share.q;
      dkv = share.kv;
    }
    send(context, dkv, "ring dkv");
    kv = next;
  }
  Heads d = with_keys(context, heads, receive(context, kv_shape, "ring dkv"));
  d.q = dq;
  return d;
}

}  // namespace

Attended ring_attention(Context& context, const Heads& heads) {
  BufferId kv = heads.kv;
  BlockOutput output;
  for (std::int64_t hop = 0; hop < context.sizes.cp; ++hop) {
    const BufferId next = next_keys(context, kv, hop);
    const Block block = block_at(context, hop);
    if (visible(block)) {
      const BlockOutput part = attend_block(context, with_keys(context, heads, kv), block);
      if (hop == 0) output = part;
      if (hop > 0) merge_outputs(context, part, output);
    }
    kv = next;
  }
  return {output.out, [=](Context& c, const Heads& h, BufferId dout) { return backward(c, h, output, dout); }};
}

}  // namespace tandem
