#include "scenarios/lowering/mlp.h"

#include <stdexcept>

#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/recompute.h"

namespace tandem::scenarios {

namespace {

ActivationAttributes activation_of(const Context& context) {
  const ModelSpec& model = context.scenario.model;
  const auto of_gates = [&](Activation kind) {
    return ActivationAttributes{kind, static_cast<float>(model.activation_limit), static_cast<float>(model.activation_offset)};
  };
  switch (model.activation) {
    case MlpFunction::silu:
      return of_gates(Activation::swiglu);
    case MlpFunction::gelu:
      return model.gated ? of_gates(Activation::geglu) : ActivationAttributes{Activation::gelu};
    case MlpFunction::squared_relu:
      return {Activation::squared_relu};
    case MlpFunction::quick_gelu:
      return of_gates(Activation::quick_geglu);
  }
  throw std::logic_error("an activation without a function");
}

}  // namespace

namespace {

BufferId activate(Context& context, Tape& tape, const ActivationAttributes& attributes, BufferId x, std::int64_t width) {
  const Shape rows = context.shape_of(x);
  const BufferId y = context.activation(rows.rank == 2 ? Shape(rows[0], width) : Shape(rows[0], rows[1], width));
  context.kernel(OpKind::activation, attributes, "activation", {x}, {y});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    c.kernel(OpKind::activation_backward, attributes, "activation", {c.kept(x), dy}, {dx});
    return dx;
  });
  return y;
}

}  // namespace

BufferId activate(Context& context, Tape& tape, BufferId x, std::int64_t width, Activates how) {
  ActivationAttributes attributes = activation_of(context);
  attributes.fused = how == Activates::fused;
  return activate(context, tape, attributes, x, width);
}

BufferId projector_activation(Context& context, Tape& tape, BufferId x, std::int64_t width) {
  return activate(context, tape, {Activation::gelu}, x, width);
}

BufferId activate_weighted(Context& context, Tape& tape, BufferId x, std::int64_t width, BufferId weights,
                           const std::shared_ptr<BufferId>& gradients, Activates how) {
  ActivationAttributes attributes = activation_of(context);
  attributes.fused = how == Activates::fused;
  const BufferId y = context.activation(Shape(context.shape_of(x)[0], width));
  context.kernel(OpKind::weighted_activation, attributes, "activation", {x, weights}, {y});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    *gradients = c.activation(c.shape_of(weights), DType::f32);
    c.kernel(OpKind::weighted_activation_backward, attributes, "activation", {c.kept(x), weights, dy}, {dx, *gradients});
    return dx;
  });
  return y;
}

BufferId down_of_activation(Context& context, Tape& tape, const Module& middle, const Module& down, BufferId inner) {
  const bool again = context.recompute().activation && !context.recomputes_mlp();
  const BufferId out =
      again ? recompute_output(context, tape, middle, down, inner) : down(context, tape, middle(context, tape, inner));
  if (!context.scenario.training.fp8_activation_input) return out;
  const BufferId stored = context.activation(context.shape_of(inner), DType::f8);
  context.kernel(OpKind::cast, {}, "cast", {inner}, {stored});
  tape.push([=](Context& c, BufferId dy) {  // before anything that reads what was kept
    const BufferId restored = c.activation(c.shape_of(inner));
    c.kernel(OpKind::cast, {}, "cast", {stored}, {restored});
    c.replace(inner, restored);
    return dy;
  });
  return out;
}

MlpParameters declare_mlp(const Context& context, ChunkParameters& parameters, const std::string& layer, std::int64_t width) {
  const LocalSizes& n = context.sizes;
  const std::int64_t h = n.hidden;
  const auto rows_of = [&](const char* name) {
    return ParameterPiece{layer + name, width * n.tp, h, width * n.tp_rank, 0, width, h};
  };
  ParameterSpec up;
  if (context.scenario.model.gated) up.pieces.push_back(rows_of(".gate"));
  up.pieces.push_back(rows_of(".up"));
  ParameterSpec down;
  down.pieces = {{layer + ".down", h, width * n.tp, 0, width * n.tp_rank, h, width}};
  MlpParameters weights;
  weights.width = width;
  weights.up = parameters.declare(std::move(up));
  weights.down = parameters.declare(std::move(down));
  if (!context.scenario.model.linear_bias) return weights;
  ParameterSpec up_bias;
  const auto bias_of = [&](const char* name) {
    return ParameterPiece{layer + name, width * n.tp, 1, width * n.tp_rank, 0, width, 1};
  };
  if (context.scenario.model.gated) up_bias.pieces.push_back(bias_of(".gate.bias"));
  up_bias.pieces.push_back(bias_of(".up.bias"));
  weights.up_bias = {parameters.declare(std::move(up_bias))};
  weights.down_bias = parameters.declare(replicated_bias(context, layer + ".down.bias", h));
  return weights;
}

BufferId mlp(Context& context, Tape& tape, const MlpParameters& weights, BufferId x) {
  const BufferId inner =
      column_parallel(context, tape, std::vector{weights.up}, x, "mlp up", GemmMath::as_trained, weights.up_bias);
  const Module middle = [=](Context& c, Tape& t, BufferId in) { return activate(c, t, in, weights.width); };
  const Module down = [=](Context& c, Tape& t, BufferId in) {
    return row_parallel(c, t, weights.down, in, "mlp down", weights.down_bias);
  };
  return down_of_activation(context, tape, middle, down, inner);
}

}  // namespace tandem::scenarios
