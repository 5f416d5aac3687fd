#include "scenarios/lowering/mixture.h"

#include <memory>

#include "scenarios/lowering/exchange.h"
#include "scenarios/lowering/experts.h"
#include "scenarios/lowering/own_tokens.h"
#include "scenarios/lowering/router.h"

namespace tandem::scenarios {
namespace {

BufferId sum(Context& context, BufferId a, BufferId b, std::string_view name) {
  const BufferId c = context.activation(context.shape_of(a));
  context.kernel(OpKind::add, {}, name, {a, b}, {c});
  return c;
}

/// All choices [tokens, top_k] below each other: to a permutation they are tokens of width 1.
BufferId choices(Context& context, BufferId per_choice) {
  return context.builder.view(per_choice, 0, Shape(context.shape_of(per_choice).elements(), 1));
}

BufferId permute(Context& context, BufferId tokens, BufferId slots, std::int64_t width, const std::string& name) {
  const RoutingAttributes& routing = context.routing;
  const Shape shape(std::int64_t{routing.parts} * routing.groups * routing.block, width);
  const BufferId rows = context.activation(shape, context.type_of(tokens));
  context.kernel(OpKind::permute, at_exchange(context), name, {tokens, slots}, {rows});
  return rows;
}

/// Returns the sums of the rows of each token, which lie as `own` does.
BufferId sum_of_rows(Context& context, BufferId rows, BufferId slots, BufferId own, const std::string& name) {
  const BufferId sums = context.activation(context.shape_of(own));
  context.kernel(OpKind::permute_backward, at_exchange(context), name, {rows, slots}, {sums});
  return sums;
}

/// Where a backward leaves the gradients of the gates.
using GateGradients = std::shared_ptr<BufferId>;

/// What the experts make of the own tokens, weighted by the gates where it returns: the gates' gradients need it again.
BufferId weighted_on_return(Context& context, Tape& tape, const MlpParameters& weights, const Routed& routed, BufferId own,
                            const GateGradients& gradients) {
  const BufferId sent = permute(context, own, routed.slots, context.sizes.hidden, "permute");
  tape.push([=](Context& c, BufferId dsent) { return sum_of_rows(c, dsent, routed.slots, own, "permute"); });
  const BufferId returned = experts(context, tape, weights, {sent}, nullptr);
  const BufferId y = context.activation(context.shape_of(own));
  context.kernel(OpKind::combine, at_exchange(context), "unpermute", {returned, routed.slots, routed.gates}, {y});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dreturned = c.activation(c.shape_of(returned));
    *gradients = c.activation(c.shape_of(routed.gates), DType::f32);
    c.kernel(OpKind::combine_backward, at_exchange(c), "unpermute", {own_tokens(c, dy), returned, routed.slots, routed.gates},
             {dreturned, *gradients});
    return dreturned;
  });
  return y;
}

/// The same, weighted where the experts are, which the gates are sent to beside the tokens.
BufferId weighted_at_experts(Context& context, Tape& tape, const MlpParameters& weights, const Routed& routed, BufferId own,
                             const GateGradients& gradients) {
  const std::int64_t hidden = context.sizes.hidden;
  const BufferId slots = choices(context, routed.slots);
  const BufferId gates = permute(context, choices(context, routed.gates), slots, 1, gates_of("permute"));
  const BufferId sent = permute(context, own, routed.slots, hidden, "permute");
  tape.push([=](Context& c, BufferId dsent) {
    const BufferId per_choice = c.activation(c.shape_of(routed.gates), DType::f32);
    c.kernel(OpKind::permute_backward, at_exchange(c), gates_of("permute"), {*gradients, slots}, {choices(c, per_choice)});
    *gradients = per_choice;
    return sum_of_rows(c, dsent, routed.slots, own, "permute");
  });
  const BufferId returned = experts(context, tape, weights, {sent, gates}, gradients);
  tape.push([=](Context& c, BufferId dy) { return permute(c, own_tokens(c, dy), routed.slots, hidden, "unpermute"); });
  return sum_of_rows(context, returned, routed.slots, own, "unpermute");
}

BufferId routed_experts(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x) {
  const BufferId own = own_tokens(context, x);
  const Routed routed = route(context, weights.router, own);
  const auto weighted = context.scenario.training.gates_at_experts ? weighted_at_experts : weighted_on_return;
  const auto gradients = std::make_shared<BufferId>(no_id);
  Tape inner;
  const BufferId y = weighted(context, inner, weights.experts, routed, own, gradients);
  tape.push([=, inner = std::move(inner), router = weights.router](Context& c, BufferId dy) {
    const BufferId through_experts = inner.backward(c, dy);
    const BufferId dx = sum(c, through_experts, route_backward(c, router, routed, c.kept(x), *gradients), "router");
    return all_tokens(c, dx, "permute");
  });
  return all_tokens(context, y, "unpermute");
}

}  // namespace

MixtureParameters declare_mixture(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  MixtureParameters weights;
  weights.router = declare_router(context, parameters, layer);
  weights.experts = declare_experts(context, parameters, layer);
  const MoeSpec& moe = context.scenario.model.moe;
  if (moe.shared_experts > 0) {
    weights.shared = declare_mlp(context, parameters, layer + ".shared", moe.shared_experts * moe.ffn / context.sizes.tp);
  }
  return weights;
}

BufferId mixture(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x) {
  if (!weights.shared) return routed_experts(context, tape, weights, x);
  Tape routed, shared;
  BufferId from_shared = no_id;
  const auto share = [&] { from_shared = mlp(context, shared, *weights.shared, x); };
  if (context.scenario.overlaps_ep()) context.beside_exchange = share;
  const BufferId from_routed = routed_experts(context, routed, weights, x);
  if (!context.scenario.overlaps_ep()) share();
  tape.push([routed = std::move(routed), shared = std::move(shared)](Context& c, BufferId dy) {
    BufferId through_shared = no_id;
    const auto share_back = [&] { through_shared = shared.backward(c, dy); };
    if (c.scenario.overlaps_ep()) {
      c.beside_exchange = share_back;
    } else {
      share_back();
    }
    const BufferId through_routed = routed.backward(c, dy);
    return sum(c, through_routed, through_shared, "experts");
  });
  return sum(context, from_routed, from_shared, "experts");
}

}  // namespace tandem::scenarios
