#include "scenarios/lowering/gated_delta.h"

#include <memory>

#include "scenarios/lowering/heads_exchange.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"

namespace tandem::scenarios {
namespace {

/// Sizes of the mixer on a tensor-parallel rank, and on a context-parallel one while it has the whole sequence.
struct GatedDeltaSizes {
  std::int64_t key_heads, value_heads, key_dim, value_dim, chunk, ranks, rank;

  explicit GatedDeltaSizes(const Context& context)
      : key_heads(context.scenario.model.linear_attention.key_heads / context.sizes.tp),
        value_heads(context.scenario.model.linear_attention.value_heads / context.sizes.tp),
        key_dim(context.scenario.model.linear_attention.key_dim),
        value_dim(context.scenario.model.linear_attention.value_dim),
        chunk(context.scenario.model.linear_attention.chunk),
        ranks(context.sizes.cp),
        rank(context.sizes.cp_rank) {}

  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  std::int64_t mixed() const { return 2 * keys() + values(); }
  std::int64_t heads_here() const { return value_heads / ranks; }
  std::int64_t values_here() const { return values() / ranks; }
  std::int64_t mixed_here() const { return mixed() / ranks; }

  ColumnParts projected() const { return {{keys(), keys(), values(), values(), value_heads, value_heads}, {1, 1, 1, 1, 1, 1}}; }
  ColumnParts output() const { return {{values()}, {1}}; }

  CausalConvAttributes conv(const Documents& documents) const {
    const std::int64_t key = keys() / ranks, value = values_here();
    return {.first_column = 0,
            .row = {rank * key, keys() + rank * key, 2 * keys() + rank * value},
            .rows = {key, key, value},
            .biased = false,
            .documents = documents};
  }
  DeltaRuleAttributes rule(const Documents& documents) const {
    return {.key_heads = static_cast<std::int32_t>(key_heads / ranks),
            .key_dim = static_cast<std::int32_t>(key_dim),
            .value_dim = static_cast<std::int32_t>(value_dim),
            .chunk = static_cast<std::int32_t>(chunk),
            .first_head = static_cast<std::int32_t>(rank * heads_here()),
            .documents = documents};
  }
  GroupNormAttributes norm() const { return {.groups = static_cast<std::int32_t>(heads_here()), .gate_column = mixed_here()}; }
};

BufferId convolve_keys(Context& context, const GatedDeltaParameters& weights, BufferId projected) {
  const GatedDeltaSizes n(context);
  const Shape rows = context.shape_of(projected);
  const BufferId mixed = context.activation(Shape(rows[0], rows[1], n.mixed_here()));
  context.kernel(OpKind::causal_conv, n.conv(documents(context)), "delta conv",
                 {projected, context.parameters().weight(weights.conv)}, {mixed});
  return mixed;
}

/// From the projection of the whole sequence to the gated output of the heads.
BufferId rule_and_norm(Context& context, Tape& tape, const GatedDeltaParameters& weights, BufferId projected) {
  const GatedDeltaSizes n(context);
  const Shape rows = context.shape_of(projected);
  const Shape shape(rows[0], rows[1], n.values_here());
  const BufferId mixed = convolve_keys(context, weights, projected);
  const BufferId out = context.activation(shape), y = context.activation(shape);
  const Documents packed = documents(context);
  context.kernel(OpKind::delta_rule, n.rule(packed), "delta rule", {mixed, projected, context.parameters().weight(weights.rule)},
                 {out});
  context.kernel(OpKind::group_norm, n.norm(), "delta norm", {out, context.parameters().weight(weights.norm), projected}, {y});
  tape.push([=](Context& c, BufferId dy) {
    const ChunkParameters& parameters = c.parameters();
    // Each kernel gives the gradients of its inputs and of its parameters; those of the projection's columns come from three.
    const BufferId dout = c.activation(shape), dprojected = c.activation(rows);
    c.kernel(OpKind::group_norm_backward, n.norm(), "delta norm", {out, parameters.weight(weights.norm), projected, dy},
             {dout, dprojected}, {parameters.gradient(weights.norm)});
    c.gave_gradient(weights.norm);
    const BufferId dmixed = c.activation(c.shape_of(mixed));
    c.kernel(OpKind::delta_rule_backward, n.rule(packed), "delta rule", {mixed, projected, parameters.weight(weights.rule), dout},
             {dmixed}, {dprojected, parameters.gradient(weights.rule)});
    c.gave_gradient(weights.rule);
    c.kernel(OpKind::causal_conv_backward, n.conv(packed), "delta conv", {projected, parameters.weight(weights.conv), dmixed}, {},
             {dprojected, parameters.gradient(weights.conv)});
    c.gave_gradient(weights.conv);
    return dprojected;
  });
  return y;
}

}  // namespace

GatedDeltaParameters declare_gated_delta(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& sizes = context.sizes;
  const GatedDeltaSizes n(context);
  const auto piece = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return ParameterPiece{layer + ".delta_" + name, rows * sizes.tp, columns, rows * sizes.tp_rank, 0, rows, columns};
  };
  const std::int64_t h = sizes.hidden, taps = context.scenario.model.linear_attention.conv;
  GatedDeltaParameters weights;
  weights.in =
      parameters.declare({.pieces = {piece("q", n.keys(), h), piece("k", n.keys(), h), piece("v", n.values(), h),
                                     piece("z", n.values(), h), piece("b", n.value_heads, h), piece("a", n.value_heads, h)}});
  weights.conv = parameters.declare({.pieces = {piece("conv_q.taps", n.keys(), taps), piece("conv_k.taps", n.keys(), taps),
                                                piece("conv_v.taps", n.values(), taps)}});
  weights.rule = parameters.declare({.pieces = {piece("a_log.weight", n.value_heads, 1), piece("dt.bias", n.value_heads, 1)}});
  ParameterSpec norm;
  norm.pieces = {{layer + ".delta_norm.weight", 1, n.value_dim, 0, 0, 1, n.value_dim}};
  if (sizes.tp > 1) norm.kind = ParameterKind::by_heads;
  norm.norm_share = 1.0 / static_cast<double>(sizes.tp);
  weights.norm = parameters.declare(std::move(norm));
  weights.out = parameters.declare(
      {.pieces = {{layer + ".delta_out", h, n.values() * sizes.tp, 0, n.values() * sizes.tp_rank, h, n.values()}}});
  return weights;
}

BufferId gated_delta(Context& context, Tape& tape, const GatedDeltaParameters& weights, BufferId x) {
  const GatedDeltaSizes n(context);
  const BufferId projected = column_parallel(context, tape, weights.in, x, "delta in");
  const BufferId whole = sequence_to_heads(context, tape, n.projected(), projected, "delta");
  const BufferId normed = rule_and_norm(context, tape, weights, whole);
  const BufferId out = heads_to_sequence(context, tape, n.output(), normed, "delta");
  return row_parallel(context, tape, weights.out, out, "delta out");
}

}  // namespace tandem::scenarios
