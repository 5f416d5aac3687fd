#include "scenarios/lowering/mixture.h"

#include <memory>

#include "scenarios/lowering/exchange.h"
#include "scenarios/lowering/experts.h"
#include "scenarios/lowering/linear.h"
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

std::int64_t width_of(const Context& context, BufferId tokens) {
  const Shape shape = context.shape_of(tokens);
  return shape[shape.rank - 1U];
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
  const BufferId sent = permute(context, own, routed.slots, width_of(context, own), "permute");
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
  const std::int64_t width = width_of(context, own);
  const BufferId slots = choices(context, routed.slots);
  const BufferId gates = permute(context, choices(context, routed.gates), slots, 1, gates_of("permute"));
  const BufferId sent = permute(context, own, routed.slots, width, "permute");
  tape.push([=](Context& c, BufferId dsent) {
    const BufferId per_choice = c.activation(c.shape_of(routed.gates), DType::f32);
    c.kernel(OpKind::permute_backward, at_exchange(c), gates_of("permute"), {*gradients, slots}, {choices(c, per_choice)});
    *gradients = per_choice;
    return sum_of_rows(c, dsent, routed.slots, own, "permute");
  });
  const BufferId returned = experts(context, tape, weights, {sent, gates}, gradients);
  tape.push([=](Context& c, BufferId dy) { return permute(c, own_tokens(c, dy), routed.slots, width, "unpermute"); });
  return sum_of_rows(context, returned, routed.slots, own, "unpermute");
}

BufferId routed_experts(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x) {
  const Routed routed = route(context, weights.router, own_tokens(context, x));
  gather_routing(context, routed.gates);
  const auto weighted = context.scenario.training.gates_at_experts ? weighted_at_experts : weighted_on_return;
  const auto gradients = std::make_shared<BufferId>(no_id);
  Tape down, inner;
  const BufferId rows = weights.latent ? replicated_linear(context, down, weights.latent->down, x, "latent down") : x;
  const BufferId y = weighted(context, inner, weights.experts, routed, own_tokens(context, rows), gradients);
  tape.push([=, latent = weights.latent, down = std::move(down), inner = std::move(inner), router = weights.router](Context& c,
                                                                                                                    BufferId dy) {
    const BufferId through_experts = inner.backward(c, dy);
    const auto through_router = [&] { return route_backward(c, router, routed, c.kept(x), *gradients); };
    if (!latent) return all_tokens(c, sum(c, through_experts, through_router(), "router"), "permute");
    const BufferId through_latent = down.backward(c, all_tokens(c, through_experts, "permute"));
    return sum(c, through_latent, all_tokens(c, through_router(), "router"), "router");
  });
  const BufferId all = all_tokens(context, y, "unpermute");
  return weights.latent ? replicated_linear(context, tape, weights.latent->up, all, "latent up") : all;
}

/// One MLP for every token, and where there is a gate the sigmoid of its projection, by a weight [1, hidden] that is applied to
/// this rank's rows in the type of the activations.
BufferId shared_experts(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x) {
  if (!weights.shared_gate) return mlp(context, tape, *weights.shared, x);
  const ParameterId weight = *weights.shared_gate;
  Tape inner;
  const BufferId y = mlp(context, inner, *weights.shared, x);
  const Shape rows = context.shape_of(x);
  const BufferId gate = context.activation(Shape(rows[0], rows[1], 1)), gated = context.activation(context.shape_of(y));
  context.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, "shared gate", {x, context.parameters().weight(weight)},
                 {gate});
  context.kernel(OpKind::sigmoid_gate, {}, "shared gate", {y, gate}, {gated});
  tape.push([=, inner = std::move(inner)](Context& c, BufferId dgated) {
    const BufferId dy = c.activation(c.shape_of(y)), dgate = c.activation(c.shape_of(gate));
    const BufferId through_gate = c.activation(rows), in = c.kept(x);
    c.kernel(OpKind::sigmoid_gate_backward, {}, "shared gate", {y, gate, dgated}, {dy, dgate});
    c.kernel(OpKind::gemm, GemmAttributes{}, "shared gate", {dgate, c.parameters().weight(weight)}, {through_gate});
    c.weight_gradient(weight, [=](Context& w, BufferId gradient) {
      w.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true}, "shared gate", {dgate, in}, {}, {gradient});
    });
    return sum(c, inner.backward(c, dy), through_gate, "shared gate");
  });
  return gated;
}

}  // namespace

MixtureParameters declare_mixture(const Context& context, ChunkParameters& parameters, const std::string& layer, bool hashed) {
  MixtureParameters weights;
  weights.router = declare_router(context, parameters, layer, hashed);
  const MoeSpec& moe = context.scenario.model.moe;
  const std::int64_t h = context.sizes.hidden;
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return parameters.declare(replicated_matrix(context, {{layer + name, rows, columns, 0, 0, rows, columns}}));
  };
  if (moe.latent > 0) weights.latent = {matrix(".expert_latent_down", moe.latent, h), matrix(".expert_latent_up", h, moe.latent)};
  weights.experts = declare_experts(context, parameters, layer);
  if (moe.shared_experts > 0) {
    weights.shared = declare_mlp(context, parameters, layer + ".shared", moe.shared_experts * moe.ffn / context.sizes.tp);
    if (moe.shared_gate) weights.shared_gate = matrix(".shared.open", 1, h);
  }
  return weights;
}

BufferId mixture(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x) {
  if (!weights.shared) return routed_experts(context, tape, weights, x);
  Tape routed, shared;
  BufferId from_shared = no_id;
  const auto share = [&] { from_shared = shared_experts(context, shared, weights, x); };
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
