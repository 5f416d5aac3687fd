#include "scenarios/lowering/lightning.h"

#include "scenarios/lowering/heads_exchange.h"
#include "scenarios/lowering/linear.h"

namespace tandem::scenarios {
namespace {

/// Sizes of the mixer on a tensor-parallel rank, and on a context-parallel one while it has the whole sequence.
struct LightningRows {
  std::int64_t heads, inner, ranks, rank;

  explicit LightningRows(const Context& context)
      : heads(context.scenario.model.lightning.heads / context.sizes.tp),
        inner(heads * context.scenario.model.lightning.head_dim),
        ranks(context.sizes.cp),
        rank(context.sizes.cp_rank) {}

  ColumnParts mixed() const { return {{inner, inner, inner}, {1, 1, 1}}; }
  ColumnParts output() const { return {{inner}, {1}}; }
};

/// Heads fade the less the later the layer (`get_slope_rate` of MiniMaxLightningAttention).
LightningAttributes attention_attributes(const Context& context) {
  const ModelSpec& model = context.scenario.model;
  const LightningRows n(context);
  const double last = static_cast<double>(model.layers - 1) + 1e-5;
  return {.head_dim = static_cast<std::int32_t>(model.lightning.head_dim),
          .chunk = static_cast<std::int32_t>(model.lightning.chunk),
          .heads = static_cast<std::int32_t>(model.lightning.heads),
          .first_head = static_cast<std::int32_t>(context.sizes.tp_rank * n.heads + n.rank * (n.heads / n.ranks)),
          .decay = static_cast<float>(1 - static_cast<double>(context.layer) / last + 1e-5)};
}

void all_reduce_rows(Context& context, BufferId sums) {
  if (context.sizes.tp > 1) context.collective(OpKind::all_reduce, Slot::tp, Stream::tp, "lightning norm", sums, sums);
}

/// From q | k | v of this rank's positions to the heads' outputs there.
BufferId attend_by_states(Context& context, Tape& tape, BufferId mixed) {
  const LightningRows n(context);
  const LightningAttributes attributes = attention_attributes(context);
  const BufferId whole = sequence_to_heads(context, tape, n.mixed(), mixed, "lightning");
  const Shape rows = context.shape_of(whole);
  const BufferId out = context.activation(Shape(rows[0], rows[1], rows[2] / 3));
  context.kernel(OpKind::lightning_attention, attributes, "lightning attention", {whole}, {out});
  tape.push([=](Context& c, BufferId dout) {
    const BufferId dwhole = c.activation(rows);
    c.kernel(OpKind::lightning_attention_backward, attributes, "lightning attention", {whole, dout}, {dwhole});
    return dwhole;
  });
  return heads_to_sequence(context, tape, n.output(), out, "lightning");
}

/// From the projections to the gated outputs of the heads.
BufferId attend_norm_and_gate(Context& context, Tape& tape, const LightningParameters& weights, BufferId projected) {
  constexpr ActivationAttributes silu{Activation::silu};
  const std::vector<BufferId> parts = outputs_apart(context, {weights.in, weights.gate}, projected);
  const BufferId qkv = parts[0], gate = parts[1], mixed = context.activation(context.shape_of(qkv));
  context.kernel(OpKind::activation, silu, "lightning silu", {qkv}, {mixed});
  Tape inner;
  const BufferId out = attend_by_states(context, inner, mixed);
  const Shape shape = context.shape_of(out), sums(shape[0], shape[1]);
  const SplitNormAttributes norm{.width = context.scenario.model.lightning.inner()};
  const BufferId squares = context.activation(sums, DType::f32), y = context.activation(shape);
  context.kernel(OpKind::split_norm_squares, {}, "lightning norm", {out}, {squares});
  all_reduce_rows(context, squares);
  context.kernel(OpKind::split_norm, norm, "lightning norm", {out, squares, context.parameters().weight(weights.norm), gate},
                 {y});
  tape.push([=, inner = std::move(inner)](Context& c, BufferId dy) {
    const ChunkParameters& parameters = c.parameters();
    const BufferId weight = parameters.weight(weights.norm), products = c.activation(sums, DType::f32);
    c.kernel(OpKind::split_norm_products, norm, "lightning norm", {out, squares, weight, gate, dy}, {products});
    all_reduce_rows(c, products);
    const BufferId dout = c.activation(shape), dprojected = c.activation(c.shape_of(projected));
    const std::vector<BufferId> dparts = outputs_apart(c, {weights.in, weights.gate}, dprojected);
    // One kernel gives the gradients of the input, of the gate and of the weight.
    c.kernel(OpKind::split_norm_backward, norm, "lightning norm", {out, squares, weight, gate, dy, products}, {dout, dparts[1]},
             {parameters.gradient(weights.norm)});
    c.gave_gradient(weights.norm);
    c.kernel(OpKind::activation_backward, silu, "lightning silu", {qkv, inner.backward(c, dout)}, {dparts[0]});
    return dprojected;
  });
  return y;
}

}  // namespace

LightningParameters declare_lightning(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& sizes = context.sizes;
  const std::int64_t h = sizes.hidden, inner = LightningRows(context).inner, all = inner * sizes.tp;
  const auto piece = [&](const char* name) {
    return ParameterPiece{layer + ".lightning_" + name, all, h, inner * sizes.tp_rank, 0, inner, h};
  };
  LightningParameters weights;
  weights.in = parameters.declare({.pieces = {piece("q"), piece("k"), piece("v")}});
  weights.gate = parameters.declare({.pieces = {piece("gate")}});
  weights.norm = parameters.declare({.pieces = {{layer + ".lightning_norm.weight", 1, all, 0, inner * sizes.tp_rank, 1, inner}}});
  weights.out = parameters.declare({.pieces = {{layer + ".lightning_out", h, all, 0, inner * sizes.tp_rank, h, inner}}});
  return weights;
}

BufferId lightning(Context& context, Tape& tape, const LightningParameters& weights, BufferId x) {
  const BufferId projected = column_parallel(context, tape, std::vector{weights.in, weights.gate}, x, "lightning in");
  return row_parallel(context, tape, weights.out, attend_norm_and_gate(context, tape, weights, projected), "lightning out");
}

}  // namespace tandem::scenarios
