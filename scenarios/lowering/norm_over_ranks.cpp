#include "scenarios/lowering/norm_over_ranks.h"

namespace tandem::scenarios {
namespace {

constexpr std::array<std::string_view, 2> names_of_normed{"query norm", "key norm"};

/// One row for all heads of a token.
BufferId rows_of_tokens(Context& context, BufferId heads) {
  const Shape shape = context.shape_of(heads);
  return context.builder.view(heads, 0, Shape(shape[0], shape[1], shape[2] * shape[3]));
}

SplitNormAttributes norm_of_all_heads(const Context& context, BufferId heads) {
  const Shape shape = context.shape_of(heads);
  return {.width = shape[2] * shape[3] * context.sizes.tp, .epsilon = NormAttributes{}.epsilon, .gated = false};
}

BufferId two_sums(Context& context, BufferId heads) {
  const Shape shape = context.shape_of(heads);
  return context.activation(Shape(2, shape[0], shape[1]), DType::f32);
}

BufferId sum_of(Context& context, BufferId both, std::size_t i) {
  const Shape shape = context.shape_of(both);
  const Shape one(shape[1], shape[2]);
  return context.builder.view(both, static_cast<std::int64_t>(i) * one.elements(), one);
}

void add_up_over_ranks(Context& context, BufferId both) {
  context.collective(OpKind::all_reduce, Slot::tp, Stream::tp, "query and key norm", both, both);
}

}  // namespace

bool is_normed_over_ranks(const Context& context) {
  return context.scenario.model.qk_norm == QkNorm::all && context.sizes.tp > 1;
}

ParameterId declare_norm_over_ranks(const Context& context, ChunkParameters& parameters, const std::string& tensor,
                                    std::int64_t heads, std::int64_t replicas) {
  const LocalSizes& n = context.sizes;
  const std::int64_t width = heads * n.head_dim;
  ParameterSpec spec{.pieces = {{tensor + ".weight", 1, width * n.tp / replicas, 0, width * (n.tp_rank / replicas), 1, width}},
                     .norm_share = 1.0 / static_cast<double>(replicas)};
  if (replicas > 1) spec.kind = ParameterKind::shared_kv;
  return parameters.declare(std::move(spec));
}

NormedOverRanks norm_over_ranks(Context& context, const std::array<ParameterId, 2>& weights, const OfQueriesAndKeys& x,
                                const OfQueriesAndKeys& y) {
  const NormedOverRanks normed{weights, x, two_sums(context, x[0])};
  for (std::size_t i = 0; i < x.size(); ++i)
    context.kernel(OpKind::split_norm_squares, {}, names_of_normed[i], {rows_of_tokens(context, x[i])},
                   {sum_of(context, normed.squares, i)});
  add_up_over_ranks(context, normed.squares);
  for (std::size_t i = 0; i < x.size(); ++i)
    context.kernel(OpKind::split_norm, norm_of_all_heads(context, x[i]), names_of_normed[i],
                   {rows_of_tokens(context, x[i]), sum_of(context, normed.squares, i), context.parameters().weight(weights[i])},
                   {rows_of_tokens(context, y[i])});
  return normed;
}

OfQueriesAndKeys norm_over_ranks_backward(Context& context, const NormedOverRanks& normed, const OfQueriesAndKeys& dy) {
  const ChunkParameters& parameters = context.parameters();
  const OfQueriesAndKeys& x = normed.x;
  const BufferId products = two_sums(context, x[0]);
  const auto reads = [&](std::size_t i) {
    return std::vector{rows_of_tokens(context, x[i]), sum_of(context, normed.squares, i), parameters.weight(normed.weights[i]),
                       rows_of_tokens(context, dy[i])};
  };
  for (std::size_t i = 0; i < x.size(); ++i)
    context.kernel(OpKind::split_norm_products, norm_of_all_heads(context, x[i]), names_of_normed[i], reads(i),
                   std::array{sum_of(context, products, i)});
  add_up_over_ranks(context, products);
  const OfQueriesAndKeys dx{context.activation(context.shape_of(x[0])), context.activation(context.shape_of(x[1]))};
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<BufferId> operands = reads(i);
    operands.push_back(sum_of(context, products, i));
    const std::array written{rows_of_tokens(context, dx[i])}, updated{parameters.gradient(normed.weights[i])};
    context.kernel(OpKind::split_norm_backward, norm_of_all_heads(context, x[i]), names_of_normed[i], operands, written, updated);
    context.gave_gradient(normed.weights[i]);
  }
  return dx;
}

}  // namespace tandem::scenarios
