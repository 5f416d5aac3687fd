#include "scenarios/lowering/compressor_of_keys.h"

#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/norm.h"
#include "scenarios/mesh/positions.h"

namespace tandem::scenarios {
namespace {

CompressAttributes windows_of(const KeyCompressor& weights) {
  return {.ratio = static_cast<std::int32_t>(weights.ratio), .overlap = weights.overlap};
}

MlaHeadsAttributes rotation_of_windows(const Context& context, const KeyCompressor& weights) {
  const CompressedAttentionSpec& spec = context.scenario.model.compressed;
  return {.rope_dim = static_cast<std::int32_t>(spec.rope_dim),
          .base = static_cast<float>(spec.rotary_base),
          .positions = whole_run(context.sizes.shared() / weights.ratio),
          .stride = static_cast<std::int32_t>(weights.ratio),
          .yarn = stretched_angles(spec)};
}

NormAttributes norm_of_keys(const Context& context) { return {.kind = context.scenario.model.norm}; }

}  // namespace

YarnAttributes stretched_angles(const CompressedAttentionSpec& spec) {
  if (!spec.yarn.stretches()) return {};
  return {.factor = static_cast<float>(spec.yarn.factor),
          .original = static_cast<float>(spec.yarn.original_positions),
          .beta_fast = static_cast<float>(spec.yarn.beta_fast),
          .beta_slow = static_cast<float>(spec.yarn.beta_slow)};
}

KeyCompressor declare_key_compressor(const Context& context, ChunkParameters& parameters, const std::string& name,
                                     const KeyCompressor& sizes, bool whole) {
  KeyCompressor weights = sizes;
  const std::int64_t rows = sizes.rows_width(), h = context.sizes.hidden;
  const auto by_heads = [&](ParameterSpec spec) {
    if (context.sizes.tp > 1) spec.kind = ParameterKind::by_heads;
    return parameters.declare(std::move(spec));
  };
  const ParameterSpec project =
      replicated_matrix(context, {{name + "_value", rows, h, 0, 0, rows, h}, {name + "_score", rows, h, 0, 0, rows, h}});
  weights.project = whole ? by_heads(project) : parameters.declare(project);
  weights.position =
      by_heads(replicated_matrix(context, {{name + "_position.weight", sizes.ratio, rows, 0, 0, sizes.ratio, rows}}));
  weights.norm = declare_norm_of_heads(context, parameters, name + "_norm", sizes.width);
  return weights;
}

CompressedKeys compress_keys(Context& context, const KeyCompressor& weights, BufferId projected, BufferId keys) {
  const Shape rows = context.shape_of(projected), values(rows[0], rows[1], weights.rows_width());
  const Shape pooled(rows[0] / weights.ratio, rows[1], weights.width);
  const ChunkParameters& parameters = context.parameters();
  CompressedKeys compressed{context.activation(values), context.activation(values), context.activation(pooled)};
  context.kernel(OpKind::split_columns, {}, "key split", {projected}, {compressed.values, compressed.scores});
  context.kernel(OpKind::compress_keys, windows_of(weights), "compress keys",
                 {compressed.values, compressed.scores, parameters.weight(weights.position)}, {compressed.pooled});
  const BufferId normed = context.activation(pooled);
  context.kernel(OpKind::norm, norm_of_keys(context), "compressed norm", {compressed.pooled, parameters.weight(weights.norm)},
                 {normed});
  context.kernel(OpKind::mla_queries, rotation_of_windows(context, weights), "key rotary", {normed}, {keys});
  return compressed;
}

BufferId compress_keys_backward(Context& context, const KeyCompressor& weights, const CompressedKeys& compressed,
                                BufferId dkeys) {
  const Shape pooled = context.shape_of(compressed.pooled), values = context.shape_of(compressed.values);
  const ChunkParameters& parameters = context.parameters();
  const BufferId dnormed = context.activation(pooled), dpooled = context.activation(pooled);
  context.kernel(OpKind::mla_queries_backward, rotation_of_windows(context, weights), "key rotary", {dkeys}, {dnormed});
  context.kernel(OpKind::norm_backward, norm_of_keys(context), "compressed norm",
                 {compressed.pooled, parameters.weight(weights.norm), dnormed}, {dpooled}, {parameters.gradient(weights.norm)});
  context.gave_gradient(weights.norm);
  const BufferId dvalues = context.activation(values), dscores = context.activation(values);
  context.kernel(OpKind::compress_keys_backward, windows_of(weights), "compress keys",
                 {compressed.values, compressed.scores, parameters.weight(weights.position), compressed.pooled, dpooled},
                 {dvalues, dscores}, {parameters.gradient(weights.position)});
  context.gave_gradient(weights.position);
  const BufferId dprojected = context.activation(Shape(values[0], values[1], 2 * values[2]));
  context.kernel(OpKind::join_columns, {}, "key split", {dvalues, dscores}, {dprojected});
  return dprojected;
}

}  // namespace tandem::scenarios
