#include "scenarios/lowering/linear.h"

namespace tandem {
namespace {

BufferId multiply(Context& context, ParameterId weight, BufferId x, std::string_view name, GemmMath math = GemmMath::as_trained) {
  const BufferId w = context.parameters().weight(weight);
  const Shape rows = context.shape_of(x);
  const BufferId y = context.activation(Shape(rows[0], rows[1], context.shape_of(w)[0]));
  const BufferId a = gemm_operand(context, x, math).by_row, b = gemm_operand(context, w, math).by_row;
  context.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, name, {a, b}, {y});
  return y;
}

BufferId input_gradient(Context& context, ParameterId weight, BufferId dy, std::string_view name,
                        GemmMath math = GemmMath::as_trained) {
  const BufferId w = context.parameters().weight(weight);
  const Shape rows = context.shape_of(dy);
  const BufferId dx = context.activation(Shape(rows[0], rows[1], context.shape_of(w)[1]));
  const BufferId a = gemm_operand(context, dy, math).by_row, b = gemm_operand(context, w, math).by_column;
  context.kernel(OpKind::gemm, GemmAttributes{}, name, {a, b}, {dx});
  return dx;
}

void add_product(Context& context, BufferId gradient, BufferId dy, BufferId x, std::string_view name,
                 GemmMath math = GemmMath::as_trained) {
  const BufferId a = gemm_operand(context, dy, math).by_column, b = gemm_operand(context, x, math).by_column;
  context.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true}, name, {a, b}, {}, {gradient});
}

}  // namespace

BufferId column_parallel(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name, GemmMath math) {
  const BufferId y = multiply(context, weight, context.gather_sequence(x, name), name, math);
  tape.push([=, name = std::string(name)](Context& c, BufferId dy) {
    const BufferId in = c.kept(x);
    const BufferId gathered = c.puts_off_weights() ? no_id : c.gather_sequence(in, name);
    const BufferId dx = c.reduce_partial(input_gradient(c, weight, dy, name, math), name);
    c.weight_gradient(weight, [=](Context& w, BufferId gradient) {
      add_product(w, gradient, dy, gathered == no_id ? w.gather_sequence(in, name) : gathered, name, math);
    });
    return dx;
  });
  return y;
}

BufferId row_parallel(Context& context, Tape& tape, ParameterId weight, BufferId x, std::string_view name) {
  const BufferId y = context.reduce_partial(multiply(context, weight, x, name), name);
  tape.push([=, name = std::string(name)](Context& c, BufferId dy) {
    const BufferId whole = c.gather_sequence(dy, name);
    const BufferId dx = input_gradient(c, weight, whole, name);
    const BufferId in = c.kept(x);
    c.weight_gradient(weight, [=](Context& w, BufferId gradient) { add_product(w, gradient, whole, in, name); });
    return dx;
  });
  return y;
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
    const BufferId dx = input_gradient(c, weight, dy, name);
    const BufferId in = c.kept(x);
    c.weight_gradient(weight, [=](Context& w, BufferId gradient) { add_product(w, gradient, dy, in, name); });
    return dx;
  });
  return y;
}

}  // namespace tandem
