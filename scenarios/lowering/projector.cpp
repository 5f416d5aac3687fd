#include "scenarios/lowering/projector.h"

#include <string>

#include "scenarios/lowering/linear.h"
#include "scenarios/lowering/mlp.h"
#include "scenarios/lowering/norm.h"

namespace tandem::scenarios {
namespace {

enum class ShardedBy {
  outputs,
  inputs,
  none
};

/// How product `i` of so many is sharded over tp.
ShardedBy sharding_of(std::size_t i, std::size_t products) {
  if (i % 2 == 1) return ShardedBy::inputs;
  return i + 1 == products ? ShardedBy::none : ShardedBy::outputs;
}

std::string name_of_product(std::size_t i) { return "projector " + std::to_string(i + 1); }

/// The rows of `out` that are this rank's alone.
BufferId own_rows(Context& context, BufferId out) {
  return context.sizes.sequence_parallel ? context.shard_of(out, context.sizes.tp_rank) : out;
}

/// One of tp parts that are alike.
float share_of(const Context& context) { return 1.0F / static_cast<float>(context.sizes.tp); }

void add_bias_to_part(Context& context, Tape& tape, ParameterId bias, BufferId out, std::string_view name) {
  BufferId added = context.parameters().weight(bias);
  if (context.sizes.tp > 1 && !context.sizes.sequence_parallel) {
    const BufferId share = context.activation(context.shape_of(added));
    context.kernel(OpKind::scale, ScaleAttributes{share_of(context)}, name, {added}, {share});
    added = share;
  }
  context.kernel(OpKind::add_bias, {}, name, {added}, {}, {own_rows(context, out)});
  tape.push([=, name = std::string(name)](Context& c, BufferId dout) {
    const BufferId of_rows = own_rows(c, dout);
    c.weight_gradient(
        bias, [=](Context& w, BufferId gradient) { w.kernel(OpKind::bias_gradient, {}, name, {of_rows}, {}, {gradient}); });
    return dout;
  });
}

/// A row-parallel product that leaves its sum to the caller.
void multiply_part(Context& context, Tape& tape, ParameterId weight, BufferId x, BufferId out, std::string_view name) {
  multiply_into(context, weight, x, out, name);
  tape.push([=, name = std::string(name)](Context& c, BufferId dout) {
    const BufferId dx = c.activation(c.shape_of(x));
    multiply_backward(c, weight, x, dout, dx, name);
    return dx;
  });
}

/// With a replicated weight. Ranks of a sequence make their own rows of the sum, and others are zero; else all make all, and give
/// a share.
void multiply_replicated(Context& context, Tape& tape, ParameterId weight, BufferId x, BufferId out, std::string_view name) {
  const LocalSizes& n = context.sizes;
  if (n.sequence_parallel) context.kernel(OpKind::fill, ScaleAttributes{0.0F}, name, {}, {out});
  const bool shares = n.tp > 1 && !n.sequence_parallel;
  const BufferId y = shares ? context.activation(context.shape_of(out)) : own_rows(context, out);
  multiply_into(context, weight, x, y, name);
  if (shares) context.kernel(OpKind::scale, ScaleAttributes{share_of(context)}, name, {y}, {out});
  tape.push([=, name = std::string(name)](Context& c, BufferId dout) {
    const BufferId dx = c.activation(c.shape_of(x));
    multiply_backward(c, weight, x, own_rows(c, dout), dx, name);
    return dx;
  });
}

ParameterSpec weight_spec(const Context& context, const std::string& tensor, ShardedBy sharded, std::int64_t outputs,
                          std::int64_t inputs) {
  const LocalSizes& n = context.sizes;
  if (sharded == ShardedBy::none) return replicated_matrix(context, {{tensor, outputs, inputs, 0, 0, outputs, inputs}});
  if (sharded == ShardedBy::outputs)
    return {.pieces = {{tensor, outputs, inputs, outputs / n.tp * n.tp_rank, 0, outputs / n.tp, inputs}}};
  return {.pieces = {{tensor, outputs, inputs, 0, inputs / n.tp * n.tp_rank, outputs, inputs / n.tp}}};
}

ParameterSpec bias_spec(const Context& context, const std::string& tensor, ShardedBy sharded, std::int64_t outputs) {
  const LocalSizes& n = context.sizes;
  if (sharded != ShardedBy::outputs) return replicated_bias(context, tensor, outputs);
  return {.pieces = {{tensor, outputs, 1, outputs / n.tp * n.tp_rank, 0, outputs / n.tp, 1}}};
}

}  // namespace

ProjectorParameters declare_projector(Context& context, ChunkParameters& parameters) {
  const ModelSpec model = context.whole_model();  // a copy: views change places
  ProjectorParameters projector;
  if (model.encoder.projector_norm) {
    const ViewScope scope(context, false);
    projector.norm = declare_norm(context, parameters, "encoder.projector_norm", model.encoder.merged());
  }
  const auto products = model.encoder.products(model.hidden);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto& [outputs, inputs] = products[i];
    const ShardedBy sharded = sharding_of(i, products.size());
    const std::string tensor = "encoder.projector" + std::to_string(i);
    projector.weights.push_back(parameters.declare(weight_spec(context, tensor, sharded, outputs, inputs)));
    if (model.encoder.projector_bias)
      projector.biases.push_back(parameters.declare(bias_spec(context, tensor + ".bias", sharded, outputs)));
  }
  return projector;
}

void project(Context& context, Tape& tape, const ProjectorParameters& projector, BufferId x, BufferId out) {
  if (projector.norm) {
    const ViewScope scope(context, false);
    x = norm(context, tape, *projector.norm, x, "projector norm");
  }
  const std::size_t products = projector.weights.size();
  for (std::size_t i = 0; i < products; ++i) {
    const ParameterId weight = projector.weights[i];
    const std::vector<ParameterId> bias = projector.biases.empty() ? projector.biases : std::vector{projector.biases[i]};
    const ShardedBy sharded = sharding_of(i, products);
    if (i + 1 == products) {
      // Backward the bias comes first.
      (sharded == ShardedBy::none ? multiply_replicated : multiply_part)(context, tape, weight, x, out, name_of_product(i));
      if (!bias.empty()) add_bias_to_part(context, tape, bias.front(), out, name_of_product(i));
      return;
    }
    x = sharded == ShardedBy::outputs
            ? column_parallel(context, tape, std::vector{weight}, x, name_of_product(i), GemmMath::as_trained, bias)
            : row_parallel(context, tape, weight, x, name_of_product(i),
                           bias.empty() ? std::nullopt : std::optional(bias.front()));
    x = projector_activation(context, tape, x, context.shape_of(x)[2]);
  }
}

}  // namespace tandem::scenarios
