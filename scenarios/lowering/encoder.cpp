#include "scenarios/lowering/encoder.h"

#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/mlp.h"
#include "scenarios/lowering/norm.h"

namespace tandem::scenarios {
namespace {

/// Rows of `merge` neighbouring patches as one: the same elements.
BufferId merged(Context& context, Tape& tape, BufferId x, std::int64_t merge) {
  const Shape rows = context.shape_of(x);
  tape.push([=](Context& c, BufferId dy) { return c.builder.view(dy, 0, rows); });
  return context.builder.view(x, 0, Shape(rows[0] / merge, rows[1], merge * rows[2]));
}

BufferId embed_patches(Context& context, Tape& tape, ParameterId weight) {
  const LocalSizes& n = context.sizes;
  const std::int64_t width = context.shape_of(context.parameters().weight(weight))[1];
  const BufferId all = patches(context, Shape(n.sequence, n.batch, width));
  const BufferId own = n.sequence_parallel ? context.shard_of(all, n.tp_rank) : all;
  tape.push([=](Context& c, BufferId dy) {
    add_weight_gradient(c, weight, own, dy, "patch embedding");
    return no_id;
  });
  return multiply(context, weight, own, "patch embedding");
}

}  // namespace

EncoderParameters declare_encoder(Context& context, ChunkParameters& parameters) {
  const EncoderSpec encoder = context.scenario.model.encoder;
  const std::int64_t h = context.sizes.hidden;
  const ViewScope scope(context, true);
  const LocalSizes& n = context.sizes;
  const std::int64_t width = encoder.projector() / n.tp;
  const ParameterId first = parameters.next();
  EncoderParameters weights;
  weights.patch = parameters.declare(
      replicated_matrix(context, {{"encoder.patch", n.hidden, encoder.patch_width, 0, 0, n.hidden, encoder.patch_width}}));
  for (std::int64_t l = 0; l < encoder.layers; ++l)
    weights.layers.push_back(declare_layer(context, parameters, "encoder.layer" + std::to_string(l), l));
  weights.norm = declare_norm(context, parameters, "encoder.norm");
  weights.up = parameters.declare({.pieces = {{"encoder.projector_up", encoder.projector(), encoder.projector(),
                                               width * n.tp_rank, 0, width, encoder.projector()}}});
  if (encoder.linear_bias)
    weights.up_bias = {
        parameters.declare({.pieces = {{"encoder.projector_up.bias", encoder.projector(), 1, width * n.tp_rank, 0, width, 1}}})};
  weights.down =
      parameters.declare({.pieces = {{"encoder.projector_down", h, encoder.projector(), 0, width * n.tp_rank, h, width}}});
  if (encoder.frozen) parameters.freeze_from(first);
  return weights;
}

void encode(Context& context, Tape& tape, const EncoderParameters& weights, BufferId out) {
  const std::int64_t merge = context.scenario.model.encoder.merge;
  const bool frozen = context.scenario.model.encoder.frozen;
  const std::int64_t width = context.scenario.model.encoder.projector() / context.sizes.tp;
  const ViewScope scope(context, true);
  Tape inner;
  BufferId x = embed_patches(context, inner, weights.patch);
  for (const LayerParameters& of_layer : weights.layers) x = layer(context, inner, of_layer, x);
  x = merged(context, inner, norm(context, inner, weights.norm, x, "encoder norm"), merge);
  x = column_parallel(context, inner, std::vector{weights.up}, x, "projector up", GemmMath::as_trained, weights.up_bias);
  x = projector_activation(context, inner, x, width);
  multiply_into(context, weights.down, x, out, "projector down");
  inner.push([x, down = weights.down](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    multiply_backward(c, down, x, dy, dx, "projector down");
    return dx;
  });
  if (frozen) return;
  tape.push([inner = std::move(inner)](Context& c, BufferId dy) {
    const ViewScope back(c, true);
    return inner.backward(c, dy);
  });
}

}  // namespace tandem::scenarios
