#include "scenarios/lowering/linear.h"

#include <memory>

#include "scenarios/lowering/tp_overlap.h"

namespace tandem::scenarios {
namespace {

std::int64_t outputs_of(const Context& context, ParameterId weight) {
  return context.shape_of(context.parameters().weight(weight))[0];
}

void multiply(Context& context, ParameterId weight, BufferId x, BufferId y, std::string_view name, GemmMath math) {
  const BufferId w = context.parameters().weight(weight);
  const BufferId a = gemm_operand(context, x, OperandRole::input, math).by_row,
                 b = gemm_operand(context, w, OperandRole::weight, math).by_row;
  context.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, name, {a, b}, {y});
}

BufferId multiply(Context& context, ParameterId weight, BufferId x, std::string_view name, GemmMath math) {
  const Shape rows = context.shape_of(x);
  const BufferId y = context.activation(Shape(rows[0], rows[1], outputs_of(context, weight)));
  multiply(context, weight, x, y, name, math);
  return y;
}

/// Into `dx`, or added to it.
void multiply_back(Context& context, ParameterId weight, BufferId dy, BufferId dx, std::string_view name, GemmMath math,
                   bool accumulate) {
  const BufferId w = context.parameters().weight(weight);
  const BufferId a = gemm_operand(context, dy, OperandRole::gradient, math).by_row,
                 b = gemm_operand(context, w, OperandRole::weight, math).by_column;
  if (accumulate) {
    context.kernel(OpKind::gemm, GemmAttributes{.accumulate = true}, name, {a, b}, {}, {dx});
  } else {
    context.kernel(OpKind::gemm, GemmAttributes{}, name, {a, b}, {dx});
  }
}

GatheredGradient input_gradient_gathered(Context& context, ParameterId weight, BufferId dy, std::string_view name) {
  const BufferId whole = gather_operand(context, dy, OperandRole::gradient, GemmMath::as_trained, OperandUse::both, name);
  const Shape rows = context.shape_of(whole);
  const BufferId dx = context.activation(Shape(rows[0], rows[1], context.shape_of(context.parameters().weight(weight))[1]));
  multiply_back(context, weight, whole, dx, name, GemmMath::as_trained, false);
  return {whole, dx};
}

void add_product(Context& context, BufferId gradient, BufferId dy, BufferId x, std::string_view name,
                 GemmMath math = GemmMath::as_trained) {
  const BufferId a = operand_by_column(context, dy, OperandRole::gradient, math),
                 b = operand_by_column(context, x, OperandRole::input, math);
  context.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true}, name, {a, b}, {}, {gradient});
}

/// Of a bias that products add where the framework has it so.
OpAttributes bias_attributes(const Context& context) {
  return context.scenario.software.fuses_bias ? OpAttributes(FusedAttributes{}) : OpAttributes();
}

void add_bias(Context& context, ParameterId bias, BufferId y, std::string_view name) {
  context.kernel(OpKind::add_bias, bias_attributes(context), name, {context.parameters().weight(bias)}, {}, {y});
}

void bias_gradient(Context& context, ParameterId bias, BufferId dy, std::string_view name) {
  context.weight_gradient(bias, [=, name = std::string(name)](Context& c, BufferId gradient) {
    c.kernel(OpKind::bias_gradient, bias_attributes(c), name, {dy}, {}, {gradient});
  });
}

/// The sum, begun when every kernel that was issued before it has ended.
BufferId reduce_after_all(Context& context, BufferId partial, std::string_view name) {
  const BufferId sum = context.reduce_partial(partial, name);
  if (context.sizes.tp == 1) return sum;
  context.issue([&context] { context.start_after_compute(context.builder.last_on(context.rank, Stream::tp)); });
  return sum;
}

}  // namespace

BufferId column_parallel(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name, GemmMath math) {
  return column_parallel(context, tape, std::vector{weight}, x, name, math);
}

std::vector<BufferId> outputs_apart(Context& context, const std::vector<ParameterId>& weights, BufferId y) {
  if (weights.size() == 1) return {y};
  const Shape rows = context.shape_of(y);
  std::vector<BufferId> parts;
  std::int64_t offset = 0;
  for (const ParameterId weight : weights) {
    const Shape shape(rows[0], rows[1], outputs_of(context, weight));
    parts.push_back(context.builder.view(y, offset, shape));
    offset += shape.elements();
  }
  return parts;
}

BufferId column_parallel(Context& context, Tape& tape, const std::vector<ParameterId>& weights, BufferId x, std::string_view name,
                         GemmMath math, const std::vector<ParameterId>& biases) {
  const Shape rows = context.gathered_shape(x);
  std::int64_t outputs = 0;
  for (const ParameterId weight : weights) outputs += outputs_of(context, weight);
  const BufferId y = context.activation(Shape(rows[0], rows[1], outputs));
  const std::vector<BufferId> parts = outputs_apart(context, weights, y);
  if (overlaps_tp(context, math)) {
    multiply_in_ring(context, weights, x, parts, name);
  } else {
    const BufferId whole = gather_operand(context, x, OperandRole::input, math, OperandUse::by_row, name);
    for (std::size_t i = 0; i < parts.size(); ++i) multiply(context, weights[i], whole, parts[i], name, math);
  }
  for (std::size_t i = 0; i < biases.size(); ++i) add_bias(context, biases[i], parts[i], name);
  tape.push([=, weights = weights, biases = biases, name = std::string(name)](Context& c, BufferId dy) {
    const BufferId in = c.kept(x);
    const auto gather = [=](Context& g) { return gather_operand(g, in, OperandRole::input, math, OperandUse::by_column, name); };
    const auto gathered = std::make_shared<BufferId>(c.puts_off_weights() ? no_id : gather(c));
    const std::vector<BufferId> gradients = outputs_apart(c, weights, dy);
    const BufferId partial = c.activation(rows);
    for (std::size_t i = 0; i < weights.size(); ++i) multiply_back(c, weights[i], gradients[i], partial, name, math, i > 0);
    const bool sums_last = c.scenario.software.sums_after_weights;
    BufferId dx = sums_last ? no_id : c.reduce_partial(partial, name);
    auto of_weight = gradients.begin();
    for (const ParameterId weight : weights) {
      c.weight_gradient(weight, [=, part = *of_weight++](Context& w, BufferId gradient) {
        if (*gathered == no_id) *gathered = gather(w);  // the first of them that was put off
        add_product(w, gradient, part, *gathered, name, math);
      });
    }
    for (std::size_t i = 0; i < biases.size(); ++i) bias_gradient(c, biases[i], gradients[i], name);
    if (sums_last) dx = reduce_after_all(c, partial, name);
    return dx;
  });
  return y;
}

BufferId row_parallel(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name,
                      std::optional<ParameterId> bias) {
  const bool overlaps = overlaps_tp(context, GemmMath::as_trained);
  const BufferId y = overlaps ? multiply_and_scatter(context, weight, x, name)
                              : context.reduce_partial(multiply(context, weight, x, name, GemmMath::as_trained), name);
  if (bias) add_bias(context, *bias, y, name);
  tape.push([=, name = std::string(name)](Context& c, BufferId dy) {
    const GatheredGradient d =
        overlaps ? input_gradient_in_ring(c, weight, dy, name) : input_gradient_gathered(c, weight, dy, name);
    const BufferId in = c.kept(x);
    c.weight_gradient(weight, [=](Context& w, BufferId gradient) { add_product(w, gradient, d.dy, in, name); });
    if (bias) bias_gradient(c, *bias, dy, name);
    return d.dx;
  });
  return y;
}

BufferId multiply(Context& context, ParameterId weight, BufferId x, std::string_view name) {
  return multiply(context, weight, x, name, GemmMath::as_trained);
}

void multiply_into(Context& context, ParameterId weight, BufferId x, BufferId y, std::string_view name) {
  multiply(context, weight, x, y, name, GemmMath::as_trained);
}

void multiply_backward(Context& context, ParameterId weight, BufferId x, BufferId dy, BufferId dx, std::string_view name) {
  multiply_back(context, weight, dy, dx, name, GemmMath::as_trained, false);
  add_weight_gradient(context, weight, x, dy, name);
}

void add_weight_gradient(Context& context, ParameterId weight, BufferId x, BufferId dy, std::string_view name) {
  context.weight_gradient(
      weight, [=, name = std::string(name)](Context& w, BufferId gradient) { add_product(w, gradient, dy, x, name); });
}

ParameterSpec replicated_bias(const Context& context, const std::string& tensor, std::int64_t outputs) {
  return replicated_matrix(context, {{tensor, outputs, 1, 0, 0, outputs, 1}});
}

ParameterSpec replicated_matrix(const Context& context, std::vector<ParameterPiece> pieces) {
  ParameterSpec spec;
  spec.pieces = std::move(pieces);
  if (context.sizes.tp > 1) spec.kind = ParameterKind::replicated;
  spec.norm_share = 1.0 / static_cast<double>(context.sizes.tp);
  return spec;
}

BufferId replicated_linear(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name) {
  const BufferId y = multiply(context, weight, x, name);
  tape.push([=, name = std::string(name)](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    multiply_backward(c, weight, c.kept(x), dy, dx, name);
    return dx;
  });
  return y;
}

}  // namespace tandem::scenarios
