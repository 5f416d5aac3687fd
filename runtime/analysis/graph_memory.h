#pragma once

#include <limits>
#include <vector>

#include "runtime/analysis/captured_tasks.h"
#include "runtime/analysis/memory_changes.h"
#include "runtime/dag/by_rank.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// The memory of CUDA graphs that are captured once and replayed in every step (captured_tasks.h). What a replay reads and
/// writes stays where it was captured, so all of it is nobody else's, at any time:
///
/// - The pool: what the captured tasks allocate. All graphs of a rank are captured into one, in the order in which they are
///   replayed, so what one frees a later one gets; it stays as large as it ever was. What a forward graph returns lies there
///   until the backward graph of its layer and micro-batch is captured.
/// - Inputs of forward graphs: a copy of each, from its layer's forward until its backward, which reads it there; copies of a
///   micro-batch that is done are those of a later one. The copied tensor itself is free from then on, but for other readers.
/// - Gradients that backward graphs begin with: one set of copies for all.
///
/// Transformer Engine's make_graphed_callables (pytorch/graph.py) has it so, with `_order` and
/// `_reuse_graph_input_output_buffers`, as Megatron-Core's TECudaGraphHelper calls it (transformer/cuda_graphs.py). The graph of
/// a whole step has its pool alone: what it reads are the step's inputs.
struct GraphMemory {
  Bytes pool_activations = 0, pool_buffers = 0;  ///< at the pool's fullest moment
  Bytes inputs = 0;
  Bytes gradients = 0;
  Seconds fullest_at = 0;  ///< the pool

  Bytes activations() const { return pool_activations + inputs + gradients; }
  Bytes bytes() const { return activations() + pool_buffers; }
};

/// Of a rank's changes; all is 0 where it has no graphs.
GraphMemory graph_memory(const std::vector<MemoryChange>& of_rank);

/// Returns the changes that have this home, in their order.
std::vector<MemoryChange> changes_in(MemoryHome home, const std::vector<MemoryChange>& of_rank);
std::vector<MemoryChange> changes_in(MemoryHome home, std::vector<MemoryChange>&& of_rank);

struct Lifetime {
  Seconds begin = std::numeric_limits<Seconds>::max();
  Seconds end = -1;  ///< before it begins: it never lives
};

/// What of a rank lies in graphs' memory, and when, as if each graph were captured whenever it is replayed.
struct GraphBuffers {
  struct Copy {
    BufferId of = 0;
    Lifetime life;
    MemoryHome home = MemoryHome::graph_inputs;
  };
  // By place among the buffers of the rank (by_rank.h).
  std::vector<Lifetime> lives;  ///< whether in graphs or not; those of views stand under what they are views of
  std::vector<bool> in_pool;    ///< empty where nothing is captured
  std::vector<Copy> copies;

  MemoryHome home_of(std::size_t place) const {
    return !in_pool.empty() && in_pool[place] ? MemoryHome::graph_pool : MemoryHome::allocator;
  }
};

/// `tasks` and `buffers`: those of the DAG.
GraphBuffers graph_buffers(const Dag& dag, const Timeline& timeline, const CapturedTasks& captured, const ByRank& tasks,
                           const ByRank& buffers, RankIndex rank);

}  // namespace tandem
