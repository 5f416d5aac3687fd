#include "scenarios/lowering/expert_bias.h"

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

ExpertBiases::ExpertBiases(DagBuilder& builder, RankIndex rank, const std::vector<ChunkParameters>& chunks, std::int64_t experts)
    : counts_of_(chunks.size(), no_id), layers_(chunks.size()) {
  std::int64_t rows = 0;
  for (const ChunkParameters& chunk : chunks) rows += static_cast<std::int64_t>(chunk.expert_biases().size());
  if (rows == 0) return;
  biases_ = builder.buffer(rank, BufferKind::optimizer, DType::f32, Shape(rows, experts));
  counts_ = builder.buffer(rank, BufferKind::optimizer, DType::f32, Shape(rows, experts));
  std::int64_t row = 0;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const std::vector<std::string>& tensors = chunks[chunk].expert_biases();
    if (!tensors.empty())
      counts_of_[chunk] = builder.view(counts_, row * experts, Shape(static_cast<std::int64_t>(tensors.size()), experts));
    for (const std::string& tensor : tensors) {
      const OfLayer& layer = layers_[chunk].emplace_back(OfLayer{.bias = builder.view(biases_, row * experts, Shape(experts)),
                                                                 .counts = builder.view(counts_, row * experts, Shape(experts))});
      builder.dag().shards.push_back(
          {.buffer = layer.bias, .tensor = tensor, .tensor_rows = 1, .tensor_columns = experts, .rows = 1, .columns = experts});
      ++row;
    }
  }
}

void clear_expert_load(Context& context) {
  if (context.expert_biases.none()) return;
  context.kernel(OpKind::fill, ScaleAttributes{0.0F}, "clear expert load", {}, {context.expert_biases.counts()});
}

namespace {

/// DualPipe's other copy of the model counted other micro-batches.
void add_up_load_of_mirror(Context& context) {
  for (const std::int16_t chunk : context.chunk_order) {
    const BufferId counts = context.expert_biases.counts_of(static_cast<std::size_t>(chunk));
    if (counts == no_id) continue;
    context.collective(OpKind::all_reduce, Slot::mirror, Stream::dp, "expert load", counts, counts);
  }
}

}  // namespace

void update_expert_biases(Context& context) {
  if (context.expert_biases.none()) return;
  const BufferId counts = context.expert_biases.counts();
  if (context.communicator(Slot::mirror) != no_id) add_up_load_of_mirror(context);
  if (context.communicator(Slot::expert_load) != no_id)
    context.collective(OpKind::all_reduce, Slot::expert_load, Stream::dp, "expert load", counts, counts);
  const ScaleAttributes rate{static_cast<float>(context.scenario.model.moe.bias_update_rate)};
  context.kernel(OpKind::update_expert_bias, rate, "expert bias", {counts}, {}, {context.expert_biases.biases()});
}

}  // namespace tandem::scenarios
