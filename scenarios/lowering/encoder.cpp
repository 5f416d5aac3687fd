#include "scenarios/lowering/encoder.h"

#include "scenarios/lowering/norm.h"

namespace tandem::scenarios {

EncoderParameters declare_encoder(Context& context, ChunkParameters& parameters) {
  const EncoderSpec encoder = context.whole_model().encoder;  // a copy: views change places
  const ViewScope scope(context, true);
  const ParameterId first = parameters.next();
  EncoderParameters weights;
  weights.patches = declare_patches(context, parameters);
  for (std::int64_t l = 0; l < encoder.layers; ++l)
    weights.layers.push_back(declare_layer(context, parameters, "encoder.layer" + std::to_string(l), l));
  weights.norm = declare_norm(context, parameters, "encoder.norm");
  weights.projector = declare_projector(context, parameters);
  if (encoder.frozen) parameters.freeze_from(first);
  return weights;
}

void encode(Context& context, Tape& tape, const EncoderParameters& weights, BufferId out) {
  const ViewScope scope(context, true);
  Tape inner;
  BufferId x = embed_patches(context, inner, weights.patches);
  for (const LayerParameters& of_layer : weights.layers) x = layer(context, inner, of_layer, x);
  x = without_class_tokens(context, inner, norm(context, inner, weights.norm, x, "encoder norm"));
  project(context, inner, weights.projector, merge_patches(context, inner, x), out);
  if (context.whole_model().encoder.frozen) return;
  tape.push([inner = std::move(inner)](Context& c, BufferId dy) {
    const ViewScope back(c, true);
    return inner.backward(c, dy);
  });
}

}  // namespace tandem::scenarios
