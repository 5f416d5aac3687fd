#include "scenarios/lowering/inputs.h"

namespace tandem::scenarios {

BufferId input(Context& context, InputShard::Content content, std::int32_t ahead) {
  const LocalSizes& n = context.sizes;
  const Scenario& scenario = context.scenario;
  const std::int64_t per_rank = scenario.training.global_batch / scenario.parallelism.data_replicas();
  const BufferId ids = context.builder.buffer(context.rank, BufferKind::input, DType::i32, Shape(n.sequence, n.batch));
  const Rank& rank = context.world.ranks[context.rank];
  const std::int64_t replica = scenario.parallelism.own_expert_axis ? rank.dp * scenario.parallelism.ep + rank.ep : rank.dp;
  const bool positions = content == InputShard::Content::positions;
  context.builder.dag().inputs.push_back(
      {.buffer = ids,
       .content = content,
       .first_sequence = context.first_sequence + replica * per_rank + context.micro_batch * n.batch,
       .positions = n.positions,
       .vocabulary = positions ? scenario.model.max_positions : scenario.model.vocab,
       .ahead = ahead});
  return ids;
}

}  // namespace tandem::scenarios
