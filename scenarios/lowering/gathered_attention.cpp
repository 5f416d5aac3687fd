#include "scenarios/lowering/gathered_attention.h"

#include "scenarios/lowering/attention_block.h"
#include "scenarios/lowering/positions.h"

namespace tandem {
namespace {

SequenceAttributes sequence_attributes(const Context& context) {
  const ParallelismSpec& p = context.scenario.parallelism;
  return {.ranks = static_cast<std::int32_t>(p.cp), .zigzag = p.cp_layout == CpLayout::zigzag};
}

Block all_keys(const Context& context) { return {context.sizes.positions, whole_sequence(context.scenario)}; }

/// This rank's queries, everybody's keys and values in the order of the sequence.
Heads gather_keys(Context& context, const Heads& heads) {
  const std::int64_t cp = context.sizes.cp;
  const auto whole = [&](BufferId part) {
    const Shape shape = context.shape_of(part);
    return context.activation(Shape(cp * shape[0], shape[1], shape[2], shape[3]));
  };
  const BufferId parts = context.gathered(Shape(cp * context.shape_of(heads.kv).elements()));
  context.collective(OpKind::all_gather, Slot::context, Stream::cp, "gather kv", heads.kv, parts);
  const Heads all{.q = heads.q, .k = whole(heads.k), .v = whole(heads.v)};
  context.kernel(OpKind::join_sequence, sequence_attributes(context), "gather kv", {parts}, {all.k, all.v});
  return all;
}

Heads backward(Context& context, const Heads& heads, const BlockOutput& output, BufferId dout) {
  const Heads all = gather_keys(context, heads);
  const Heads d = attend_block_backward(context, all, all_keys(context), output, dout);
  const Shape own = context.shape_of(heads.kv);
  const BufferId parts = context.activation(Shape(context.sizes.cp * own.elements()));
  context.kernel(OpKind::split_sequence, sequence_attributes(context), "scatter dkv", {d.k, d.v}, {parts});
  const BufferId dkv = context.activation(own);
  context.collective(OpKind::reduce_scatter, Slot::context, Stream::cp, "scatter dkv", parts, dkv);
  Heads mine = with_keys(context, heads, dkv);
  mine.q = d.q;
  return mine;
}

}  // namespace

Attended gathered_attention(Context& context, const Heads& heads) {
  const BlockOutput output = attend_block(context, gather_keys(context, heads), all_keys(context));
  return {output.out, [=](Context& c, const Heads& h, BufferId dout) { return backward(c, h, output, dout); }};
}

}  // namespace tandem
