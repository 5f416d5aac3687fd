#include "scenarios/lowering/mlp.h"

#include "scenarios/lowering/linear.h"

namespace tandem {
namespace {

BufferId activate(Context& context, Tape& tape, BufferId x) {
  const ActivationAttributes attributes{context.scenario.model.gated ? Activation::swiglu : Activation::gelu};
  const Shape rows = context.shape_of(x);
  const BufferId y = context.activation(Shape(rows[0], rows[1], context.sizes.ffn));
  context.kernel(OpKind::activation, attributes, "activation", {x}, {y});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    c.kernel(OpKind::activation_backward, attributes, "activation", {x, dy}, {dx});
    return dx;
  });
  return y;
}

}  // namespace

MlpParameters declare_mlp(const Context& context, ChunkParameters& parameters, const std::string& layer) {
  const LocalSizes& n = context.sizes;
  const std::int64_t h = n.hidden;
  const auto rows_of = [&](const char* name) {
    return ParameterPiece{layer + name, n.ffn * n.tp, h, n.ffn * n.tp_rank, 0, n.ffn, h};
  };
  ParameterSpec up;
  if (context.scenario.model.gated) up.pieces.push_back(rows_of(".gate"));
  up.pieces.push_back(rows_of(".up"));
  ParameterSpec down;
  down.pieces = {{layer + ".down", h, n.ffn * n.tp, 0, n.ffn * n.tp_rank, h, n.ffn}};
  const ParameterId up_id = parameters.declare(std::move(up));
  return {up_id, parameters.declare(std::move(down))};
}

BufferId mlp(Context& context, Tape& tape, const MlpParameters& weights, BufferId x) {
  const BufferId inner = column_parallel(context, tape, weights.up, x, "mlp up");
  return row_parallel(context, tape, weights.down, activate(context, tape, inner), "mlp down");
}

}  // namespace tandem
