#include "scenarios/lowering/inputs.h"

#include "scenarios/mesh/positions.h"

namespace tandem::scenarios {

BufferId input(Context& context, InputShard::Content content, std::int32_t ahead) {
  const LocalSizes& n = context.sizes;
  const Scenario& scenario = context.scenario;
  const BufferId ids = context.builder.buffer(context.rank, BufferKind::input, DType::i32, Shape(n.sequence, n.batch));
  const bool positions = content == InputShard::Content::positions;
  context.builder.dag().inputs.push_back({.buffer = ids,
                                          .content = content,
                                          .first_sequence = context.sequence_number(),
                                          .positions = moved(n.positions, n.first_shared),
                                          .vocabulary = positions ? scenario.model.max_positions : scenario.model.vocab,
                                          .ahead = ahead});
  return ids;
}

BufferId patches(Context& context, const Shape& shape) {
  const BufferId pixels = context.builder.buffer(context.rank, BufferKind::input, context.scenario.training.storage(), shape);
  context.builder.dag().inputs.push_back(
      {.buffer = pixels, .content = InputShard::Content::noise, .first_sequence = context.sequence_number()});
  return pixels;
}

Documents documents(Context& context) {
  if (context.in_encoder()) return context.documents_of_view;
  if (!context.scenario.training.documents.any()) return {};
  const std::int64_t first = context.sequence_number();
  if (!context.scenario.parallelism.dynamic_cp) return context.packed_documents.of_sequences(first, context.sizes.batch);
  const LocalSizes& n = context.sizes;
  return context.packed_documents.of_group(first, {.first = n.first_shared / n.sequence, .ranks = n.cp});
}

BufferId sequence_numbers(Context& context) {
  BufferId& numbers = context.sequence_numbers.try_emplace({context.steps_before, context.micro_batch}, no_id).first->second;
  if (numbers != no_id) return numbers;
  numbers = context.builder.buffer(context.rank, BufferKind::input, DType::i32, Shape(1, context.sizes.batch));
  context.builder.dag().inputs.push_back({.buffer = numbers,
                                          .content = InputShard::Content::sequences,
                                          .first_sequence = context.sequence_number(),
                                          .positions = {.start = {0, 0}, .length = {1, 0}}});
  return numbers;
}

}  // namespace tandem::scenarios
