#include "scenarios/lowering/dropout.h"

#include "scenarios/lowering/inputs.h"
#include "scenarios/mesh/positions.h"

namespace tandem::scenarios {
namespace {

/// Every layer has random numbers of its own at each place; what belongs to no layer comes before the first.
std::int32_t stream_of(const Context& context, DropoutSite site) {
  constexpr std::int32_t sites = 4;
  return (context.layer + 1) * sites + static_cast<std::int32_t>(site);
}

}  // namespace

DropoutAttributes dropout_of_hidden(const Context& context, DropoutSite site) {
  const LocalSizes& n = context.sizes;
  const std::int64_t first = n.sequence_parallel ? n.tp_rank * n.sequence_shard : 0;
  return {.probability = static_cast<float>(context.scenario.training.hidden_dropout),
          .stream = stream_of(context, site),
          .rows = moved(positions_among(n.positions, first, n.sequence_shard), n.first_shared)};
}

DropoutAttributes dropout_of_probabilities(const Context& context, std::int64_t heads) {
  const LocalSizes& n = context.sizes;
  // Under ulysses the heads of a tensor-parallel rank are dealt out to the context-parallel ones, in runs.
  const std::int64_t first = n.tp_rank * n.heads + (heads < n.heads ? n.cp_rank * heads : 0);
  return {.probability = static_cast<float>(context.scenario.training.attention_dropout),
          .stream = stream_of(context, DropoutSite::probabilities),
          .first_head = static_cast<std::int32_t>(first),
          .rows = moved(whole_run(n.shared()), n.first_shared)};
}

BufferId drop_embedding(Context& context, Tape& tape, BufferId x) {
  if (context.scenario.training.hidden_dropout == 0) return x;
  const DropoutAttributes attributes = dropout_of_hidden(context, DropoutSite::embedding);
  const BufferId y = context.activation(context.shape_of(x)), mask = context.activation(context.shape_of(x), DType::u8);
  context.kernel(OpKind::dropout, attributes, "embedding dropout", {x, sequence_numbers(context)}, {y, mask});
  tape.push([=](Context& c, BufferId dy) {
    const BufferId dx = c.activation(c.shape_of(x));
    c.kernel(OpKind::dropout_backward, attributes, "embedding dropout", {dy, mask}, {dx});
    return dx;
  });
  return y;
}

}  // namespace tandem::scenarios
