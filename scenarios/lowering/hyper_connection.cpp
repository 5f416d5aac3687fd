#include "scenarios/lowering/hyper_connection.h"

#include "scenarios/lowering/linear.h"

namespace tandem::scenarios {
namespace {

HyperAttributes hyper_attributes(const Context& context, bool mixes) {
  const HyperConnectionSpec& spec = context.scenario.model.hyper;
  return {.streams = static_cast<std::int32_t>(spec.streams),
          .iterations = mixes ? static_cast<std::int32_t>(spec.iterations) : 0};
}

Shape shape_of_one(const Context& context, BufferId streams) {
  const Shape shape = context.shape_of(streams);
  return Shape(shape[0], shape[1], shape[2] / context.scenario.model.hyper.streams);
}

struct Gates {
  BufferId logits = no_id, gates = no_id;
};

/// The product is kept in fp32, as a router's.
Gates make_gates(Context& context, const HyperConnectionParameters& weights, BufferId x, const HyperAttributes& attributes) {
  const HyperConnectionSpec& spec = context.scenario.model.hyper;
  const Shape rows = context.shape_of(x), shape(rows[0] * rows[1], attributes.iterations > 0 ? spec.gates() : spec.streams);
  const Gates made{context.activation(shape, DType::f32), context.activation(shape, DType::f32)};
  const ChunkParameters& parameters = context.parameters();
  context.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, "hyper map", {x, parameters.weight(weights.map)},
                 {made.logits});
  context.kernel(OpKind::hyper_gates, attributes, "hyper gates", {x, made.logits, parameters.weight(weights.base)}, {made.gates});
  return made;
}

/// Returns dx with what goes through the gates.
BufferId gates_backward(Context& context, const HyperConnectionParameters& weights, BufferId x, const Gates& made,
                        BufferId dgates, BufferId dx, const HyperAttributes& attributes) {
  const ChunkParameters& parameters = context.parameters();
  const BufferId dlogits = context.activation(context.shape_of(made.logits), DType::f32);
  context.kernel(OpKind::hyper_gates_backward, attributes, "hyper gates",
                 {x, made.logits, parameters.weight(weights.base), dgates}, {dlogits}, {dx, parameters.gradient(weights.base)});
  context.gave_gradient(weights.base);
  const BufferId through_map = context.activation(context.shape_of(x)), sum = context.activation(context.shape_of(x));
  context.kernel(OpKind::gemm, GemmAttributes{}, "hyper map", {dlogits, parameters.weight(weights.map)}, {through_map});
  context.weight_gradient(weights.map, [=](Context& c, BufferId gradient) {
    c.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true}, "hyper map", {dlogits, x}, {}, {gradient});
  });
  context.kernel(OpKind::add, {}, "hyper streams", {dx, through_map}, {sum});
  return sum;
}

BufferId gather(Context& context, BufferId x, const Gates& made, const HyperAttributes& attributes) {
  const BufferId y = context.activation(shape_of_one(context, x));
  context.kernel(OpKind::hyper_gather, attributes, "hyper gather", {x, made.gates}, {y});
  return y;
}

}  // namespace

HyperConnectionParameters declare_hyper_connection(const Context& context, ChunkParameters& parameters, const std::string& tensor,
                                                   bool mixes) {
  const HyperConnectionSpec& spec = context.scenario.model.hyper;
  const std::int64_t gates = mixes ? spec.gates() : spec.streams, factors = mixes ? 3 : 1, width = residual_width(context);
  const auto replicated = [&](std::vector<ParameterPiece> pieces) {
    return parameters.declare(replicated_matrix(context, std::move(pieces)));
  };
  return {.map = replicated({{tensor, gates, width, 0, 0, gates, width}}),
          .base = replicated(
              {{tensor + ".factor.weight", factors, 1, 0, 0, factors, 1}, {tensor + ".bias", gates, 1, 0, 0, gates, 1}})};
}

BufferId hyper_connection(Context& context, Tape& tape, const HyperConnectionParameters& weights, BufferId x,
                          const Module& half) {
  const HyperAttributes attributes = hyper_attributes(context, true);
  const Gates made = make_gates(context, weights, x, attributes);
  Tape inner;
  const BufferId z = half(context, inner, gather(context, x, made, attributes));
  const BufferId merged = context.activation(context.shape_of(x));
  context.kernel(OpKind::hyper_merge, attributes, "hyper merge", {x, made.gates, z}, {merged});
  tape.push([=, inner = std::move(inner)](Context& c, BufferId dmerged) {
    const BufferId dx = c.activation(c.shape_of(x)), dz = c.activation(c.shape_of(z));
    const BufferId dgates = c.activation(c.shape_of(made.gates), DType::f32);
    c.kernel(OpKind::hyper_merge_backward, attributes, "hyper merge", {x, made.gates, z, dmerged}, {dx, dz, dgates});
    const BufferId dy = inner.backward(c, dz);
    c.kernel(OpKind::hyper_gather_backward, attributes, "hyper gather", {x, made.gates, dy}, {}, {dx, dgates});
    return gates_backward(c, weights, x, made, dgates, dx, attributes);
  });
  return merged;
}

BufferId begin_streams(Context& context, Tape& tape, BufferId x) {
  const HyperAttributes attributes = hyper_attributes(context, true);
  const Shape shape = context.shape_of(x);
  const BufferId streams = context.activation(Shape(shape[0], shape[1], residual_width(context)));
  context.kernel(OpKind::hyper_expand, attributes, "hyper streams", {x}, {streams});
  tape.push([=](Context& c, BufferId dstreams) {
    const BufferId dx = c.activation(shape);
    c.kernel(OpKind::hyper_expand_backward, attributes, "hyper streams", {dstreams}, {dx});
    return dx;
  });
  return streams;
}

BufferId end_streams(Context& context, Tape& tape, const HyperConnectionParameters& weights, BufferId x) {
  const HyperAttributes attributes = hyper_attributes(context, false);
  const Gates made = make_gates(context, weights, x, attributes);
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x)), dgates = c.activation(c.shape_of(made.gates), DType::f32);
    for (const BufferId sum : {dx, dgates}) c.kernel(OpKind::fill, ScaleAttributes{0.0F}, "hyper gather", {}, {sum});
    c.kernel(OpKind::hyper_gather_backward, attributes, "hyper gather", {x, made.gates, dy}, {}, {dx, dgates});
    return gates_backward(c, weights, x, made, dgates, dx, attributes);
  });
  return gather(context, x, made, attributes);
}

}  // namespace tandem::scenarios
