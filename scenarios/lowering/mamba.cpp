#include "scenarios/lowering/mamba.h"

#include "scenarios/lowering/heads_exchange.h"
#include "scenarios/lowering/inputs.h"
#include "scenarios/lowering/linear.h"

namespace tandem::scenarios {
namespace {

/// Sizes of the mixer on a tensor-parallel rank, and on a context-parallel one while it has the whole sequence.
struct MambaSizes {
  std::int64_t heads, inner, groups, state, ranks, rank;
  std::int64_t repeats;  ///< context-parallel ranks with the same group

  explicit MambaSizes(const Context& context)
      : heads(context.scenario.model.mamba.heads / context.sizes.tp),
        inner(heads * context.scenario.model.mamba.head_dim),
        groups(context.scenario.model.mamba.groups / context.sizes.tp),
        state(context.scenario.model.mamba.state),
        ranks(context.sizes.cp),
        rank(context.sizes.cp_rank),
        repeats(groups < ranks ? ranks / groups : 1) {}

  std::int64_t keys() const { return groups * state; }
  std::int64_t inner_here() const { return inner / ranks; }
  std::int64_t groups_here() const { return groups * repeats / ranks; }
  std::int64_t keys_here() const { return groups_here() * state; }
  std::int64_t mixed_here() const { return inner_here() + 2 * keys_here(); }

  ColumnParts projected() const { return {{inner, inner, keys(), keys(), heads}, {1, 1, repeats, repeats, 1}}; }
  ColumnParts output() const { return {{inner}, {1}}; }

  CausalConvAttributes conv(const Documents& documents) const {
    const std::int64_t keys_row = rank / repeats * keys_here();
    return {.first_column = inner_here(),
            .row = {rank * inner_here(), inner + keys_row, inner + keys() + keys_row},
            .rows = {inner_here(), keys_here(), keys_here()},
            .biased = true,
            .documents = documents};
  }
};

SsdAttributes scan_attributes(Context& context, const MambaSizes& n) {
  const MambaSpec& mamba = context.scenario.model.mamba;
  return {.head_dim = static_cast<std::int32_t>(mamba.head_dim),
          .groups = static_cast<std::int32_t>(n.groups_here()),
          .state = static_cast<std::int32_t>(mamba.state),
          .chunk = static_cast<std::int32_t>(mamba.chunk),
          .first_head = static_cast<std::int32_t>(n.rank * (n.heads / n.ranks)),
          .documents = documents(context)};
}

BufferId convolve(Context& context, const MambaParameters& weights, BufferId projected) {
  const MambaSizes n(context);
  const Shape rows = context.shape_of(projected);
  const BufferId mixed = context.activation(Shape(rows[0], rows[1], n.mixed_here()));
  context.kernel(OpKind::causal_conv, n.conv(documents(context)), "mamba conv",
                 {projected, context.parameters().weight(weights.conv)}, {mixed});
  return mixed;
}

/// From the projection of the whole sequence to the gated output of the scan.
BufferId convolve_and_scan(Context& context, Tape& tape, const MambaParameters& weights, BufferId projected) {
  const MambaSizes n(context);
  const SsdAttributes attributes = scan_attributes(context, n);
  const Shape rows = context.shape_of(projected);
  const Shape shape(rows[0], rows[1], n.inner_here());
  const BufferId out = context.activation(shape), y = context.activation(shape);
  context.kernel(OpKind::ssd_scan, attributes, "mamba scan",
                 {convolve(context, weights, projected), projected, context.parameters().weight(weights.scan)}, {out, y});
  tape.push([=](Context& c, BufferId dout) {
    const Phase before = c.phase;
    c.phase = Phase::recompute;
    const BufferId mixed = convolve(c, weights, projected);
    c.phase = before;
    const ChunkParameters& parameters = c.parameters();
    const BufferId dmixed = c.activation(c.shape_of(mixed)), dprojected = c.activation(rows);
    // Each kernel gives the gradients of its inputs and of its parameters.
    c.kernel(OpKind::ssd_scan_backward, attributes, "mamba scan", {mixed, projected, parameters.weight(weights.scan), y, dout},
             {dmixed, dprojected}, {parameters.gradient(weights.scan)});
    c.gave_gradient(weights.scan);
    c.kernel(OpKind::causal_conv_backward, n.conv(attributes.documents), "mamba conv",
             {projected, parameters.weight(weights.conv), dmixed}, {}, {dprojected, parameters.gradient(weights.conv)});
    c.gave_gradient(weights.conv);
    return dprojected;
  });
  return out;
}

BufferId norm_by_groups(Context& context, Tape& tape, const MambaParameters& weights, BufferId x) {
  const GroupNormAttributes attributes{.groups = static_cast<std::int32_t>(MambaSizes(context).groups)};
  const BufferId y = context.activation(context.shape_of(x));
  context.kernel(OpKind::group_norm, attributes, "mamba norm", {x, context.parameters().weight(weights.norm)}, {y});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    const ChunkParameters& parameters = c.parameters();
    c.kernel(OpKind::group_norm_backward, attributes, "mamba norm", {x, parameters.weight(weights.norm), dy}, {dx},
             {parameters.gradient(weights.norm)});
    c.gave_gradient(weights.norm);
    return dx;
  });
  return y;
}

}  // namespace

MambaParameters declare_mamba(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& sizes = context.sizes;
  const MambaSizes n(context);
  const auto piece = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return ParameterPiece{layer + ".mamba_" + name, rows * sizes.tp, columns, rows * sizes.tp_rank, 0, rows, columns};
  };
  const std::int64_t h = sizes.hidden, taps = context.scenario.model.mamba.conv + 1;
  MambaParameters weights;
  weights.in = parameters.declare({.pieces = {piece("z", n.inner, h), piece("x", n.inner, h), piece("b", n.keys(), h),
                                              piece("c", n.keys(), h), piece("dt", n.heads, h)}});
  weights.conv = parameters.declare({.pieces = {piece("conv_x.taps", n.inner, taps), piece("conv_b.taps", n.keys(), taps),
                                                piece("conv_c.taps", n.keys(), taps)}});
  weights.scan = parameters.declare(
      {.pieces = {piece("a_log.weight", n.heads, 1), piece("dt.bias", n.heads, 1), piece("skip.weight", n.heads, 1)}});
  weights.norm = parameters.declare(
      {.pieces = {{layer + ".mamba_norm.weight", 1, n.inner * sizes.tp, 0, n.inner * sizes.tp_rank, 1, n.inner}}});
  weights.out =
      parameters.declare({.pieces = {{layer + ".mamba_out", h, n.inner * sizes.tp, 0, n.inner * sizes.tp_rank, h, n.inner}}});
  return weights;
}

BufferId mamba(Context& context, Tape& tape, const MambaParameters& weights, BufferId x) {
  const MambaSizes n(context);
  const BufferId projected = column_parallel(context, tape, weights.in, x, "mamba in");
  const BufferId whole = sequence_to_heads(context, tape, n.projected(), projected, "mamba");
  const BufferId scanned = convolve_and_scan(context, tape, weights, whole);
  const BufferId out = heads_to_sequence(context, tape, n.output(), scanned, "mamba");
  return row_parallel(context, tape, weights.out, norm_by_groups(context, tape, weights, out), "mamba out");
}

}  // namespace tandem::scenarios
