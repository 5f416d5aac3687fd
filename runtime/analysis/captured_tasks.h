#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// What is captured as one forward graph and one backward graph: of a layer and a micro-batch, or of a rank's whole step.
struct GraphCallable {
  std::vector<TaskId> forward;   ///< in the order in which the CPU would issue them
  std::vector<TaskId> backward;  ///< with what is recomputed in it
};

/// CUDA graphs whose memory a framework keeps: those of `training.cuda_graph`, where the framework says what it captures
/// (`Software::captured`).
enum class HeldGraphs : std::uint8_t {
  none,
  layers,  ///< of each layer what precedes the exchange of experts, or attention; a forward and a backward for each micro-batch
  step     ///< all forwards and backwards as one, where nothing is left for the CPU to issue
};
HeldGraphs held_graphs(const Software& software);

/// The tasks in these graphs.
///
/// Of `layers` those that Megatron-Core captures with --cuda-graph-modules attn mamba moe_router moe_preprocess
/// (transformer/transformer_layer.py, _te_cuda_graph_capture): from a layer's first task to its router or, where it has none, to
/// the first residual sum behind what mixes positions, and the backward of these. A layer with neither is not captured, and no
/// exchange of experts, stages or replicas is.
///
/// Of `step` all but the optimizer, as megatron/core/full_cuda_graph.py has it.
struct CapturedTasks {
  std::vector<GraphCallable> callables;
  std::vector<std::vector<std::uint32_t>> on_rank;  ///< by rank, indices of its callables. Empty where nothing is captured
  std::vector<std::uint32_t> callable_of;  ///< by task, an index; no_id outside of graphs. Empty where nothing is captured

  bool empty() const { return callables.empty(); }
  std::uint32_t of(TaskId id) const { return callable_of.empty() ? no_id : callable_of[id]; }
};

CapturedTasks captured_tasks(const Dag& dag);

}  // namespace tandem
