#include "scenarios/lowering/mla_attention.h"

#include <optional>
#include <utility>

#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/mla_projections.h"

namespace tandem::scenarios {
namespace {

BufferId like(Context& context, BufferId id) { return context.activation(context.shape_of(id)); }

/// Keys and values projected up, [positions, b, heads * (nope + v)], and the rotary part of the keys, into those of the heads of
/// `q`.
Heads split_keys(Context& context, BufferId q, BufferId up, BufferId rope, const Positions& positions) {
  const MlaSpec& mla = context.scenario.model.mla;
  const Shape rows = context.shape_of(up);
  const Shape k(rows[0], rows[1], context.sizes.heads, mla.qk_dim()), v(rows[0], rows[1], context.sizes.heads, mla.v_dim);
  const PassedKeys keys = passed_in(context, context.activation(Shape(k.elements() + v.elements())), k, v);
  context.kernel(OpKind::mla_keys_values, mla_heads_attributes(context, positions), "rotary", {up, rope},
                 {keys.first, keys.second});
  return {.q = q, .k = keys.first, .v = keys.second, .kv = keys.both};
}

void split_keys_backward(Context& context, const Heads& d, BufferId dup, BufferId drope, const Positions& positions) {
  context.kernel(OpKind::mla_keys_values_backward, mla_heads_attributes(context, positions), "rotary", {d.k, d.v}, {dup, drope});
}

/// Keys and values of this rank's positions, where they are not passed on.
struct Keys {
  BufferId up = no_id, rope = no_id;
  Tape tape;
};

Keys project_keys(Context& context, const MlaParameters& weights, const PassedKeys& latents) {
  Keys keys;
  keys.up = column_parallel(context, keys.tape, weights.latent_up, latents.first, "latent up");
  keys.rope = context.gather_sequence(latents.second, "key rope");
  return keys;
}

PassedKeys keys_backward(Context& context, const Keys& keys, const Heads& d) {
  const BufferId dup = like(context, keys.up), drope = like(context, keys.rope);
  split_keys_backward(context, d, dup, drope, context.sizes.positions);
  const BufferId drope_shard = context.reduce_partial(drope, "key rope");
  return {.first = keys.tape.backward(context, dup), .second = drope_shard};
}

MlaAttended attend_own(Context& context, const MlaParameters& weights, const Latents& latents) {
  Queries queries = project_queries(context, weights, latents.query);
  Keys keys = project_keys(context, weights, latents.keys);
  const auto split = [](Context& c, const Queries& q, const Keys& k) {
    return split_keys(c, split_queries(c, q), k.up, k.rope, c.sizes.positions);
  };
  const Heads heads = split(context, queries, keys);
  Attended attended = attend(context, heads);
  const BufferId out = attended.out;
  return {out, [=, weights = weights, queries = std::move(queries), keys = std::move(keys), attended = std::move(attended)](
                   Context& c, BufferId dout) {
            const bool up_again = c.recompute().mla_up, attention_again = c.recompute().attention;
            const Phase before = c.phase;
            c.phase = Phase::recompute;
            std::optional<Queries> queries_again;
            std::optional<Keys> keys_again;
            if (up_again) {
              queries_again = project_queries(c, weights, c.kept(latents.query));
              keys_again = project_keys(c, weights, latents.keys);
            }
            const Queries& q = up_again ? *queries_again : queries;
            const Keys& k = up_again ? *keys_again : keys;
            const Heads h = up_again || attention_again ? split(c, q, k) : heads;
            std::optional<Attended> attended_again;
            if (attention_again) attended_again = attend(c, h);
            const Attended& a = attention_again ? *attended_again : attended;
            c.phase = before;
            const Heads d = a.backward(c, h, dout);
            const PassedKeys dkeys = keys_backward(c, k, d);
            return Latents{queries_backward(c, q, d.q), dkeys};
          }};
}

KeyMaking from_latents(ParameterId up) {
  return {.heads =
              [up](Context& c, BufferId q, const PassedKeys& latents, const Positions& positions) {
                return split_keys(c, q, multiply(c, up, latents.first, "latent up"), latents.second, positions);
              },
          .gradient =
              [up](Context& c, const PassedKeys& latents, const Heads& d, const Positions& positions) {
                const Shape rows = c.shape_of(latents.first);
                const BufferId dup = c.activation(Shape(rows[0], rows[1], c.shape_of(c.parameters().weight(up))[0]));
                const PassedKeys dlatents = passed_in(c, like(c, latents.both), latents);
                split_keys_backward(c, d, dup, dlatents.second, positions);
                multiply_backward(c, up, latents.first, dup, dlatents.first, "latent up");
                return dlatents;
              }};
}

MlaAttended attend_passed(Context& context, const MlaParameters& weights, const Latents& latents) {
  const KeyMaking making = from_latents(weights.latent_up);
  const Queries queries = project_queries(context, weights, latents.query);
  const BufferId heads = split_queries(context, queries);
  const AttendedAcross attended = attend_across(context, {heads, gather_latents(context, latents.keys)}, making);
  return {attended.out, [=](Context& c, BufferId dout) {
            const bool up_again = c.recompute().mla_up, attention_again = c.recompute().attention;
            const PassedKeys keys = gather_latents(c, latents.keys);
            const Phase before = c.phase;
            c.phase = Phase::recompute;
            const Queries q = up_again ? project_queries(c, weights, c.kept(latents.query)) : queries;
            const Attending mine{up_again || attention_again ? split_queries(c, q) : heads, keys};
            const AttendedAcross a = attention_again ? attend_across(c, mine, making) : attended;
            c.phase = before;
            const Attending d = a.backward(c, mine, dout);
            const BufferId dlatent = c.reduce_partial(d.keys.first, "latent"),
                           drope = c.reduce_partial(d.keys.second, "key rope");
            return Latents{queries_backward(c, q, d.q), {.first = dlatent, .second = drope}};
          }};
}

}  // namespace

MlaAttended attend_latents(Context& context, const MlaParameters& weights, const Latents& latents) {
  return passes_keys(context) ? attend_passed(context, weights, latents) : attend_own(context, weights, latents);
}

}  // namespace tandem::scenarios
