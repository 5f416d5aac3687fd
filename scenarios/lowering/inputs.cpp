#include "scenarios/lowering/inputs.h"

namespace tandem::scenarios {

namespace {

/// The number of the micro-batch's first sequence in the global batch.
std::int64_t first_sequence(const Context& context) {
  const Scenario& scenario = context.scenario;
  const std::int64_t per_rank = scenario.training.global_batch / scenario.parallelism.data_replicas();
  const Rank& rank = context.world.ranks[context.rank];
  const std::int64_t replica = scenario.parallelism.own_expert_axis ? rank.dp * scenario.parallelism.ep + rank.ep : rank.dp;
  return context.first_sequence + replica * per_rank + context.micro_batch * context.sizes.batch;
}

}  // namespace

BufferId input(Context& context, InputShard::Content content, std::int32_t ahead) {
  const LocalSizes& n = context.sizes;
  const Scenario& scenario = context.scenario;
  const BufferId ids = context.builder.buffer(context.rank, BufferKind::input, DType::i32, Shape(n.sequence, n.batch));
  const bool positions = content == InputShard::Content::positions;
  context.builder.dag().inputs.push_back({.buffer = ids,
                                          .content = content,
                                          .first_sequence = first_sequence(context),
                                          .positions = n.positions,
                                          .vocabulary = positions ? scenario.model.max_positions : scenario.model.vocab,
                                          .ahead = ahead});
  return ids;
}

BufferId patches(Context& context, const Shape& shape) {
  const BufferId pixels = context.builder.buffer(context.rank, BufferKind::input, context.scenario.training.storage(), shape);
  context.builder.dag().inputs.push_back(
      {.buffer = pixels, .content = InputShard::Content::noise, .first_sequence = first_sequence(context)});
  return pixels;
}

Documents documents(Context& context) {
  if (context.in_encoder()) return context.documents_of_view;
  return context.scenario.training.documents.any()
             ? context.packed_documents.of_sequences(first_sequence(context), context.sizes.batch)
             : Documents{};
}

BufferId sequence_numbers(Context& context) {
  BufferId& numbers = context.sequence_numbers.try_emplace({context.steps_before, context.micro_batch}, no_id).first->second;
  if (numbers != no_id) return numbers;
  numbers = context.builder.buffer(context.rank, BufferKind::input, DType::i32, Shape(1, context.sizes.batch));
  context.builder.dag().inputs.push_back({.buffer = numbers,
                                          .content = InputShard::Content::sequences,
                                          .first_sequence = first_sequence(context),
                                          .positions = {.start = {0, 0}, .length = {1, 0}}});
  return numbers;
}

}  // namespace tandem::scenarios
