#include "scenarios/lowering/mixture.h"

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

BufferId routed_experts(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x) {
  const BufferId own = own_tokens(context, x);
  const Routed routed = route(context, weights.router, own);
  const RoutingAttributes& routing = context.routing;
  const BufferId sent =
      context.activation(Shape(std::int64_t{routing.parts} * routing.groups * routing.block, context.sizes.hidden));
  context.kernel(OpKind::permute, at_exchange(context), "permute", {own, routed.slots}, {sent});
  Tape inner;
  const BufferId returned = experts(context, inner, weights.experts, sent);
  const BufferId y = context.activation(context.shape_of(own));
  context.kernel(OpKind::combine, at_exchange(context), "unpermute", {returned, routed.slots, routed.gates}, {y});

  tape.push([=, inner = std::move(inner), router = weights.router](Context& c, BufferId dy) {
    const BufferId dreturned = c.activation(c.shape_of(returned));
    const BufferId dgates = c.activation(c.shape_of(routed.gates), DType::f32);
    c.kernel(OpKind::combine_backward, at_exchange(c), "unpermute", {own_tokens(c, dy), returned, routed.slots, routed.gates},
             {dreturned, dgates});
    const BufferId dsent = inner.backward(c, dreturned);
    const BufferId through_experts = c.activation(c.shape_of(own));
    c.kernel(OpKind::permute_backward, at_exchange(c), "permute", {dsent, routed.slots}, {through_experts});
    const BufferId dx = sum(c, through_experts, route_backward(c, router, routed, c.kept(x), dgates), "router");
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
