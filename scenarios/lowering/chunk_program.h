#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/embedding.h"
#include "scenarios/lowering/layer.h"
#include "scenarios/lowering/loss.h"
#include "scenarios/lowering/mtp.h"
#include "scenarios/lowering/pipeline.h"
#include "scenarios/lowering/sharded_weights.h"
#include "scenarios/schedules/chunk_layout.h"
#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

/// One model chunk of a rank: what it holds of the model, and the passes of micro-batches through it. A pass comes in pieces
/// (what comes in, each layer, what goes out), so that two passes can be lowered in turns.
class ChunkProgram {
 public:
  using Pieces = std::vector<std::function<void()>>;

  /// Declares the chunk's parameters. Chunks are numbered in the order of their construction.
  ChunkProgram(Context& context, const ChunkLayout& layout);

  Pieces forward(std::int32_t micro_batch, PipelineLink& link);
  Pieces backward(std::int32_t micro_batch, PipelineLink& link) { return backward(micro_batch, link, nullptr); }
  Pieces backward_input(std::int32_t micro_batch, PipelineLink& link) {
    return backward(micro_batch, link, &weights_[micro_batch]);
  }
  Pieces backward_weight(std::int32_t micro_batch);

  /// Returns the sections of the chunk: embedding, layers, loss, as far as they are on this rank.
  const std::vector<Section>& sections() const { return sections_; }
  /// Returns which weights each piece of an action computes with.
  std::vector<std::optional<Visit>> visits(const Action& action) const;
  void take_weights_from(ShardedWeights& sharded) { sharded_ = &sharded; }

 private:
  Context& context_;
  const std::int16_t number_;
  const ChunkLayout layout_;
  EmbeddingParameters embedding_;
  std::vector<LayerParameters> layers_;
  LossParameters loss_;
  MtpParameters mtp_;
  std::vector<Section> sections_;
  ShardedWeights* sharded_ = nullptr;
  std::map<std::int32_t, std::vector<Tape>> tapes_;  ///< forward done, backward to come: by micro-batch, each piece's
  std::map<std::pair<std::int32_t, std::size_t>, BufferId> segments_;  ///< inputs of recomputed ones: by micro-batch, first piece
  std::map<std::int32_t, PutOffWeights> weights_;                      ///< backward_input done, backward_weight to come

  /// Pieces in forward order: what comes in, each layer, further predictions where another chunk has the loss, what goes out.
  std::size_t last_piece() const { return layers_.size() + (layout_.predicts_for_another() ? 2 : 1); }
  bool is_layer(std::size_t piece) const { return piece > 0 && piece <= layers_.size(); }
  std::optional<std::size_t> section_of(std::size_t piece) const;
  Pieces backward(std::int32_t micro_batch, PipelineLink& link, PutOffWeights* put_off);
  /// The layers' pieces [first, last] that the backward recomputes before it goes through `piece`; empty but for the last of a
  /// segment.
  std::vector<std::size_t> recomputed_before(std::size_t piece) const;
  BufferId passed_on(BufferId x);
  BufferId lower_layer(std::int32_t micro_batch, std::size_t piece, Tape& tape, BufferId x);
  std::function<void()> recompute(std::int32_t micro_batch, std::size_t piece, const std::shared_ptr<BufferId>& x);
  /// Returns the micro-batch's pass through the layer that the piece is, layer -1 where it is another section, or before the
  /// first.
  LayerPass pass_of(std::size_t piece, std::int32_t micro_batch) const;
  /// Lowers piece number `piece` of the chunk in forward order, labelled, while its weights are there.
  void lower_piece(std::size_t piece, Phase phase, std::int32_t micro_batch, const std::function<void()>& lower);
};

}  // namespace tandem::scenarios
