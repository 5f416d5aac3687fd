#include "scenarios/lowering/ulysses_ring_attention.h"

#include "scenarios/lowering/passed_keys.h"
#include "scenarios/lowering/ring_attention.h"
#include "scenarios/lowering/ulysses_attention.h"

namespace tandem::scenarios {
namespace {

/// Of a row of all heads of a rank, so wide, to the shares of the group's ranks.
ColumnPartsAttributes shares_of_heads(const Context& context, std::int64_t width, bool inverse) {
  const ParallelismSpec& p = context.scenario.parallelism;
  return {.ranks = static_cast<std::int32_t>(p.heads_ranks()),
          .zigzag = p.has_zigzag_chunks(),
          .inverse = inverse,
          .widths = {static_cast<std::int32_t>(width)},
          .repeats = {1}};
}

BufferId exchange_in_group(Context& context, BufferId flat) {
  const BufferId arrived = context.gathered(context.shape_of(flat));
  context.collective(OpKind::all_to_all, Slot::context_heads, Stream::cp, "ulysses", flat, arrived);
  return arrived;
}

BufferId as_rows(Context& context, BufferId heads) {
  const Shape shape = context.shape_of(heads);
  return context.builder.view(heads, 0, Shape(shape[0], shape[1], shape[2] * shape[3]));
}

/// [s, b, H, d] of a rank as that of its group, of so many ranks: [ranks s, b, H / ranks, d]
Shape shape_in_group(const Context& context, BufferId x) {
  const std::int64_t ranks = context.scenario.parallelism.heads_ranks();
  const Shape part = context.shape_of(x);
  return Shape(part[0] * ranks, part[1], part[2] / ranks, part[3]);
}

void to_group(Context& context, BufferId x, BufferId y) {
  const Shape part = context.shape_of(x);
  const ColumnPartsAttributes attributes = shares_of_heads(context, part[2] * part[3], false);
  const BufferId flat = context.activation(Shape(part.elements()));
  context.kernel(OpKind::pack_parts, attributes, "ulysses pack", {as_rows(context, x)}, {flat});
  context.kernel(OpKind::order_parts, attributes, "ulysses order", {exchange_in_group(context, flat)}, {as_rows(context, y)});
}

BufferId from_group(Context& context, BufferId y) {
  const std::int64_t ranks = context.scenario.parallelism.heads_ranks();
  const Shape whole = context.shape_of(y);
  const BufferId x = context.activation(Shape(whole[0] / ranks, whole[1], whole[2] * ranks, whole[3]));
  const ColumnPartsAttributes attributes = shares_of_heads(context, whole[2] * ranks * whole[3], true);
  const BufferId flat = context.activation(Shape(whole.elements()));
  context.kernel(OpKind::order_parts, attributes, "ulysses order", {as_rows(context, y)}, {flat});
  context.kernel(OpKind::pack_parts, attributes, "ulysses pack", {exchange_in_group(context, flat)}, {as_rows(context, x)});
  return x;
}

Attending to_group(Context& context, const Heads& heads) {
  const Heads mine =
      make_heads(context, shape_in_group(context, heads.q), shape_in_group(context, heads.k), shape_in_group(context, heads.v));
  to_group(context, heads.q, mine.q);
  to_group(context, heads.k, mine.k);
  to_group(context, heads.v, mine.v);
  return {mine.q, {mine.k, mine.v, mine.kv}, own_part(context, heads.sink)};
}

}  // namespace

Attended ulysses_ring_attention(Context& context, const Heads& heads) {
  const Attending mine = to_group(context, heads);
  const AttendedAcross attended = ring_attention(context, mine, as_they_are());
  return {from_group(context, attended.out), [=](Context& c, const Heads& h, BufferId dout) {
            const Attending exchanged = h.q == heads.q ? mine : to_group(c, h);
            const BufferId dheads = c.activation(shape_in_group(c, dout));
            to_group(c, dout, dheads);
            const Attending d = attended.backward(c, exchanged, dheads);
            return Heads{.q = from_group(c, d.q), .k = from_group(c, d.keys.first), .v = from_group(c, d.keys.second)};
          }};
}

}  // namespace tandem::scenarios
