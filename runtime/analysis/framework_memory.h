#pragma once

#include <span>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// What a framework keeps on a rank's GPU for the whole step, beside the buffers of the graph.
struct FrameworkMemory {
  Bytes reserved = 0;      ///< `Software::reserved`
  Bytes workspaces = 0;    ///< of libraries, `Software::workspaces` on the rank's GPU
  Bytes placeholders = 0;  ///< of `Software::placeholder_gradients`, one for each shape of a layer's weights

  Bytes bytes() const { return reserved + workspaces + placeholders; }
};

/// What autograd is left with for good, from the first product whose weight has that shape on.
struct Placeholder {
  Bytes bytes = 0;
  TaskId first = 0;
};

/// By rank of the DAG. Weights that one fused product multiplies (queries, keys and values; gate and up) are one matrix, whose
/// placeholder has their rows together; experts of one grouped product share the placeholder of one of them.
std::vector<std::vector<Placeholder>> lasting_placeholders(const Dag& dag);

/// By rank of the DAG. `placeholders`: its lasting ones.
std::vector<FrameworkMemory> framework_memory(const Dag& dag, const std::vector<std::vector<Placeholder>>& placeholders);

/// The bytes of the placeholder that the task takes while it runs: that of a weight outside of all layers, such as the LM head's,
/// which Megatron-LM's own product makes anew each time. 0 for other tasks.
Bytes passing_placeholder(const Dag& dag, TaskId id);

}  // namespace tandem
