#pragma once

#include <cstddef>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/parameters.h"

namespace tandem::scenarios {

// Balancing without a loss (DeepSeek-V3, arXiv 2412.19437, section 2.1.2; --moe-router-enable-expert-bias of Megatron-Core): a
// bias for each expert of a layer counts where tokens choose. Each rank counts the choices of its own tokens over all
// micro-batches of a step; the counts are summed over the ranks of the stage in one all-reduce for all its layers, as
// finalize_model_grads of Megatron-Core does; then each rank moves the biases, which it holds whole in fp32.

/// The biases of the routers on one rank, and how many choices of the step each expert had.
class ExpertBiases {
 public:
  struct OfLayer {
    BufferId bias = no_id, counts = no_id;  ///< [experts], fp32
  };

  ExpertBiases() = default;
  /// Allocates those that the chunks declared, [layers, experts] in the order of the chunks.
  ExpertBiases(DagBuilder& builder, RankIndex rank, const std::vector<ChunkParameters>& chunks, std::int64_t experts);

  bool none() const { return biases_ == no_id; }
  const OfLayer& of(std::int16_t chunk, std::size_t number) const { return layers_[static_cast<std::size_t>(chunk)][number]; }
  BufferId biases() const { return biases_; }
  BufferId counts() const { return counts_; }
  /// The counts of one chunk's layers; `no_id` where it has none.
  BufferId counts_of(std::size_t chunk) const { return counts_of_[chunk]; }

 private:
  BufferId biases_ = no_id, counts_ = no_id;
  std::vector<BufferId> counts_of_;           ///< by chunk
  std::vector<std::vector<OfLayer>> layers_;  ///< by chunk
};

class Context;

/// Sets the counts to zero, before the step's first backward.
void clear_expert_load(Context& context);

/// Sums the counts up and moves the biases, after the step's last backward.
void update_expert_biases(Context& context);

}  // namespace tandem::scenarios
