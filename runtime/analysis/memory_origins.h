#pragma once

#include <optional>
#include <vector>

#include "runtime/analysis/captured_tasks.h"
#include "runtime/analysis/framework_memory.h"
#include "runtime/analysis/optimizer_updates.h"
#include "runtime/dag/by_rank.h"
#include "runtime/dag/dag.h"

namespace tandem {

/// What the memory of ranks comes from, whenever their tasks run: it follows from the graph alone, so it can be found while a
/// step is simulated.
struct MemoryOrigins {
  /// The DAG must outlive this.
  explicit MemoryOrigins(const Dag& dag);

  ByRank tasks, buffers;
  CapturedTasks captured;
  /// By kernel, the bytes per element of its largest operand that a framework holds beside it; none where another kernel does its
  /// work.
  std::vector<std::optional<double>> held_by_kernel;
  bool anything_is_held = false;                       ///< by a kernel
  std::vector<std::vector<Placeholder>> placeholders;  ///< by rank, the lasting ones
  std::vector<FrameworkMemory> framework;              ///< by rank
  std::vector<OptimizerUpdate> updates;                ///< of all ranks
};

}  // namespace tandem
