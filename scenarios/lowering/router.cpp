#include "scenarios/lowering/router.h"

#include <optional>

#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/own_tokens.h"

namespace tandem::scenarios {

namespace {

/// Of the layer's router: with choices by hash nothing balances them.
RoutingAttributes routing_of(const Context& context, const RouterParameters& router) {
  RoutingAttributes routing = context.routing;
  if (!router.hashed) return routing;
  routing.hashed = true;
  routing.biased = false;
  routing.balance = 0;
  routing.sequences = routing.sequence = 0;
  return routing;
}

/// The numbers of this rank's own tokens.
BufferId own_numbers(Context& context) {
  const BufferId all = input(context, InputShard::Content::tokens);
  return context.sizes.tp > 1 ? context.shard_of(all, context.sizes.tp_rank) : all;
}

BufferId counts_by_sequence(Context& context, BufferId slots) {
  const RoutingAttributes& routing = context.routing;
  const BufferId counts =
      context.activation(Shape(routing.sequences, static_cast<std::int64_t>(routing.slots.size())), DType::f32);
  context.kernel(OpKind::count_by_sequence, routing, "sequence load", {slots}, {counts});
  const bool over_cp = context.communicator(Slot::sequence_load) != no_id;
  if (!over_cp && context.sizes.tp == 1) return counts;
  const Stream stream = over_cp ? Stream::cp : Stream::tp;
  context.collective(OpKind::all_reduce, over_cp ? Slot::sequence_load : Slot::tp, stream, "sequence load", counts, counts);
  context.issue([&context, stream] { context.hold_compute_until(context.builder.last_on(context.rank, stream)); });
  return counts;
}

BufferId converted(Context& context, BufferId x, DType type) {
  if (context.type_of(x) == type) return x;
  const BufferId y = context.activation(context.shape_of(x), type);
  context.kernel(OpKind::scale, ScaleAttributes{1}, "router", {x}, {y});
  return y;
}

/// The type to which both operands of a product of the logits' gradients are converted before; none where products convert what
/// they read themselves. In fp32: Megatron-Core's RouterGatingLinearFunction (moe/moe_utils.py), which calls Transformer Engine's
/// general_gemm.
std::optional<DType> product_type(const Context& context, BufferId x) {
  if (context.scenario.software.rounds_router_gradients) return context.type_of(x);
  if (context.scenario.cluster.gpu.efficiency.tf32) return DType::f32;
  return {};
}

BufferId operand(Context& context, BufferId buffer, std::optional<DType> type) {
  return type ? converted(context, buffer, *type) : buffer;
}

}  // namespace

RouterParameters declare_router(const Context& context, ChunkParameters& parameters, const std::string& layer, bool hashed) {
  const std::int64_t experts = context.scenario.model.moe.experts;
  const std::int64_t h = context.sizes.hidden;
  ParameterSpec spec;
  spec.pieces = {{layer + ".router", experts, h, 0, 0, experts, h}};
  if (context.sizes.tp > 1) spec.kind = ParameterKind::replicated;
  spec.norm_share = 1.0 / static_cast<double>(context.sizes.tp);
  RouterParameters router{.weight = parameters.declare(std::move(spec)), .hashed = hashed};
  if (context.scenario.model.moe.router_bias)
    router.logit_bias = parameters.declare(replicated_bias(context, layer + ".router.logits.bias", experts));
  if (context.scenario.model.moe.expert_bias && !hashed) router.bias = parameters.declare_expert_bias(layer + ".router.bias");
  return router;
}

Routed route(Context& context, const RouterParameters& router, BufferId own) {
  const Shape rows = context.shape_of(own);
  const std::int64_t tokens = rows[0] * rows[1];
  Routed routed;
  routed.logits = context.activation(Shape(tokens, context.scenario.model.moe.experts), DType::f32);
  routed.gates = context.activation(Shape(tokens, context.routing.top_k), DType::f32);
  routed.slots = context.activation(Shape(tokens, context.routing.top_k), DType::i32);
  context.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, "router", {own, context.parameters().weight(router.weight)},
                 {routed.logits});
  if (router.logit_bias)
    context.kernel(OpKind::add_bias, {}, "router", {context.parameters().weight(*router.logit_bias)}, {}, {routed.logits});
  const RoutingAttributes routing = routing_of(context, router);
  std::vector<BufferId> reads{routed.logits};
  if (routing.hashed) reads.push_back(own_numbers(context));
  if (routing.biased) reads.push_back(context.expert_biases.of(context.chunk, router.bias).bias);
  const std::vector<BufferId> writes{routed.gates, routed.slots};
  context.kernel(OpKind::route, routing, routing.hashed ? "hash" : "top-k", reads, writes);
  if (routing.sequences > 0) routed.counts = counts_by_sequence(context, routed.slots);
  return routed;
}

BufferId route_backward(Context& context, const RouterParameters& router, const Routed& routed, BufferId x,
                        BufferId gate_gradients) {
  const BufferId dlogits = context.activation(context.shape_of(routed.logits), DType::f32);
  std::vector<BufferId> reads{routed.logits, routed.slots, gate_gradients};
  if (routed.counts != no_id) reads.insert(reads.begin() + 2, routed.counts);
  const std::vector<BufferId> writes{dlogits};
  const RoutingAttributes routing = routing_of(context, router);
  context.kernel(OpKind::route_backward, routing, routing.hashed ? "hash" : "top-k", reads, writes);
  if (routing.biased)
    context.kernel(OpKind::count_choices, routing, "expert load", {routed.slots}, {},
                   {context.expert_biases.of(context.chunk, router.bias).counts});
  const std::optional<DType> type = product_type(context, x);
  const BufferId gradients = operand(context, dlogits, type);
  const BufferId weight = operand(context, context.parameters().weight(router.weight), type);
  const BufferId product = context.activation(context.shape_of(own_tokens(context, x)), type.value_or(context.type_of(x)));
  context.kernel(OpKind::gemm, GemmAttributes{}, "router", {gradients, weight}, {product});
  const BufferId dx = converted(context, product, context.type_of(x));
  const BufferId all = all_tokens(context, gradients, "router");
  context.weight_gradient(router.weight, [=](Context& c, BufferId gradient) {
    const BufferId in = operand(c, x, type);
    c.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true}, "router", {all, in}, {}, {gradient});
  });
  if (router.logit_bias)
    context.weight_gradient(*router.logit_bias, [=](Context& c, BufferId gradient) {
      c.kernel(OpKind::bias_gradient, {}, "router", {all}, {}, {gradient});
    });
  return dx;
}

}  // namespace tandem::scenarios
