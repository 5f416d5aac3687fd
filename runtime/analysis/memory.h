#pragma once

#include <vector>

#include "runtime/analysis/memory_changes.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// A rank's memory at its fullest moment, from the lifetimes of its buffers: parameters, gradients, optimizer states and inputs
/// live for the whole step, the rest from the start of the first task that touches a buffer to the end of the last.
struct MemoryUse {
  RankIndex rank = no_id;  ///< of the DAG; no_id where none is meant
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes activations = 0;        ///< at the peak
  Bytes buffers = 0;            ///< communication buffers and inputs at the peak
  Bytes host = 0;               ///< what the rank keeps in the memory of its host, which is none of the peak
  Bytes inputs = 0;             ///< these among them, and what the framework keeps
  Bytes framework = 0;          ///< the latter alone (framework_memory.h)
  Bytes graph_activations = 0;  ///< of the activations, what CUDA graphs hold (graph_memory.h)
  Bytes graph_buffers = 0;      ///< of the buffers
  Seconds peak_at = 0;
  std::size_t changes = 0;  ///< of its memory in the timeline (memory_changes.h)

  Bytes graphs() const { return graph_activations + graph_buffers; }
  Bytes peak() const { return parameters + gradients + optimizer + activations + buffers; }
};

/// By rank of the DAG.
std::vector<MemoryUse> memory_use(const Dag& dag, const Timeline& timeline);

/// The use of one rank at a time: several threads may ask, each of some of the ranks.
class MemoryUses {
 public:
  /// `changes` must outlive this.
  explicit MemoryUses(const MemoryChanges& changes) : changes_(changes) {}
  MemoryUse of(RankIndex rank) const { return of(rank, changes_[rank]); }
  /// Where the rank's changes are known already.
  MemoryUse of(RankIndex rank, const std::vector<MemoryChange>& changes) const;

 private:
  const MemoryChanges& changes_;

  /// Returns the use of what lives for the whole step.
  MemoryUse that_stays(RankIndex rank) const;
};

/// Of each pipeline stage the rank of the DAG whose peak is highest; no_id for a stage without ranks.
std::vector<RankIndex> fullest_ranks(const Dag& dag, const std::vector<MemoryUse>& by_rank);

/// Returns the use of the fullest rank of each pipeline stage.
std::vector<MemoryUse> memory_by_stage(const Dag& dag, const std::vector<MemoryUse>& by_rank);

}  // namespace tandem
