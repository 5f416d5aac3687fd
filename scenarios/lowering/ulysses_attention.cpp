#include "scenarios/lowering/ulysses_attention.h"

#include "scenarios/lowering/attention_block.h"

namespace tandem::scenarios {
namespace {

GroupsAttributes by_rank(const Context& context) { return {static_cast<std::int32_t>(context.sizes.cp)}; }

BufferId exchange(Context& context, BufferId x) {
  const BufferId y = context.activation(context.shape_of(x));
  context.collective(OpKind::all_to_all, Slot::context, Stream::cp, "ulysses", x, y);
  return y;
}

/// [s/cp, b, H, d] to [s, b, H/cp, d]
BufferId to_heads(Context& context, BufferId x) {
  const std::int64_t cp = context.sizes.cp;
  const Shape part = context.shape_of(x);
  const BufferId packed = context.activation(Shape(cp * part[0], part[1], part[2] / cp, part[3]));
  context.kernel(OpKind::pack_groups, by_rank(context), "ulysses pack", {x}, {packed});
  return exchange(context, packed);
}

/// [s, b, H/cp, d] to [s/cp, b, H, d]
BufferId to_sequence(Context& context, BufferId x) {
  const std::int64_t cp = context.sizes.cp;
  const Shape whole = context.shape_of(x);
  const BufferId y = context.activation(Shape(whole[0] / cp, whole[1], whole[2] * cp, whole[3]));
  context.kernel(OpKind::unpack_groups, by_rank(context), "ulysses unpack", {exchange(context, x)}, {y});
  return y;
}

}  // namespace

std::optional<AttentionSink> own_part(const Context& context, std::optional<AttentionSink> sink) {
  if (!sink) return sink;
  const std::int64_t ranks = context.scenario.parallelism.heads_ranks();
  sink->heads /= ranks;
  sink->first_head += context.sizes.cp_rank % ranks * sink->heads;
  return sink;
}

Attended ulysses_attention(Context& context, const Heads& heads) {
  const auto exchange_all = [](Context& c, const Heads& h) {
    return Heads{.q = to_heads(c, h.q), .k = to_heads(c, h.k), .v = to_heads(c, h.v), .sink = own_part(c, h.sink)};
  };
  const Heads mine = exchange_all(context, heads);
  const Attended attended = whole_attention(context, mine);
  return {to_sequence(context, attended.out), [=](Context& c, const Heads& h, BufferId dout) {
            const Heads exchanged = h.q == heads.q ? mine : exchange_all(c, h);
            const Heads d = attended.backward(c, exchanged, to_heads(c, dout));
            return Heads{.q = to_sequence(c, d.q), .k = to_sequence(c, d.k), .v = to_sequence(c, d.v)};
          }};
}

}  // namespace tandem::scenarios
