#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/data_parallel.h"
#include "scenarios/lowering/embedding.h"
#include "scenarios/lowering/layer.h"
#include "scenarios/lowering/loss.h"
#include "scenarios/lowering/mtp.h"
#include "scenarios/lowering/pipeline.h"
#include "scenarios/lowering/schedule.h"
#include "scenarios/lowering/sharded_weights.h"
#include "scenarios/lowering/stages.h"

namespace tandem {

/// One rank's whole step: declares what its chunks hold, then follows its stage's schedule.
class StageProgram {
 public:
  explicit StageProgram(Context& context);
  void lower();

 private:
  struct Chunk {
    ChunkLayout layout;
    EmbeddingParameters embedding;
    std::vector<LayerParameters> layers;
    LossParameters loss;
    MtpParameters mtp;
    std::vector<Section> sections;  ///< embedding, layers, loss, as far as they are here
  };
  Context& context_;
  std::vector<Chunk> chunks_;
  std::map<std::pair<std::int32_t, std::int32_t>, Tape> tapes_;  ///< by (chunk, micro-batch): forward done, backward to come
  std::map<std::pair<std::int32_t, std::int32_t>, PutOffWeights> weights_;  ///< backward_input done, backward_weight to come

  std::optional<ShardedWeights> sharded_weights_;  ///< with ZeRO-3

  void declare();
  std::vector<Action> actions() const;
  void follow(const std::vector<Action>& actions);
  std::vector<Visit> plan_visits(const std::vector<Action>& actions) const;
  /// Lowers a section; the weights it needs are there, forward and backward.
  BufferId in_section(Tape& tape, std::size_t section, const std::function<BufferId()>& lower);
  void enter(std::size_t section);
  void leave();
  void forward(PipelineLink& link);
  void backward(PipelineLink& link);
  void backward_input(PipelineLink& link);
  void backward_weight();
};

}  // namespace tandem
