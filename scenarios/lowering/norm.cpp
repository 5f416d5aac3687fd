#include "scenarios/lowering/norm.h"

namespace tandem::scenarios {

namespace {

ParameterSpec norm_spec(const Context& context, const std::string& tensor, std::int64_t h, ParameterKind kind) {
  ParameterSpec spec;
  spec.pieces.push_back({tensor + ".weight", 1, h, 0, 0, 1, h});
  if (context.scenario.model.norm == NormKind::layer) spec.pieces.push_back({tensor + ".bias", 1, h, 0, 0, 1, h});
  if (context.sizes.tp > 1) spec.kind = kind;
  spec.norm_share = 1.0 / static_cast<double>(context.sizes.tp);
  return spec;
}

}  // namespace

ParameterId declare_norm(const Context& context, ChunkParameters& parameters, const std::string& tensor, std::int64_t h) {
  return parameters.declare(norm_spec(context, tensor, h, ParameterKind::replicated));
}

ParameterId declare_norm_of_heads(const Context& context, ChunkParameters& parameters, const std::string& tensor,
                                  std::int64_t width) {
  return parameters.declare(norm_spec(context, tensor, width, ParameterKind::by_heads));
}

ParameterId declare_norm(const Context& context, ChunkParameters& parameters, const std::string& tensor) {
  return declare_norm(context, parameters, tensor, context.sizes.hidden);
}

BufferId norm(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name) {
  const BufferId y = context.activation(context.shape_of(x));
  norm(context, tape, weight, x, y, name);
  return y;
}

void norm(Context& context, Tape& tape, ParameterId weight, BufferId x, BufferId y, std::string_view name) {
  const NormAttributes attributes{.kind = context.scenario.model.norm};
  context.kernel(OpKind::norm, attributes, name, {x, context.parameters().weight(weight)}, {y});
  context.last_norm = y;
  tape.push([=, name = std::string(name)](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    const ChunkParameters& parameters = c.parameters();
    // One kernel gives both gradients.
    c.kernel(OpKind::norm_backward, attributes, name, {x, parameters.weight(weight), dy}, {dx}, {parameters.gradient(weight)});
    c.gave_gradient(weight);
    return dx;
  });
}

}  // namespace tandem::scenarios
