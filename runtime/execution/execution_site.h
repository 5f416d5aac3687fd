#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/backend_names.h"
#include "runtime/cuda/gpu.h"
#include "runtime/dag/timeline.h"
#include "runtime/executor.h"
#include "runtime/host/memory.h"
#include "runtime/plan/graph_pieces.h"

namespace tandem {

/// The backend on which a step is executed, and how.
struct ExecutionChoice {
  std::string backend = host_backend;  ///< or cuda_backend
  /// What GPUs launch as CUDA graphs; nothing: what the simulation takes to be captured (see simulated_scope).
  std::optional<GraphScope> graphs = {};
  bool rounds = true;  ///< casts to fp8 and fp4 round (runtime/ops/cast.h)
};

/// A backend with a DAG in its memory: initial contents before the step, its results after it.
class ExecutionSite {
 public:
  virtual ~ExecutionSite() = default;
  /// Every distinct collective once on crafted numbers (see verify_collectives.h); how many. Before `execute`.
  virtual std::size_t verify_collectives() = 0;
  /// `ended` counts the tasks of the run that is timed.
  virtual Timeline execute(EndedTasks& ended) = 0;
  /// Returns the buffers that live for the whole step, and single numbers, as the step left them.
  virtual const HostMemory& memory() = 0;
  /// Single numbers alone, such as the loss.
  virtual const HostMemory& numbers() { return memory(); }
  /// Returns the bytes that a rank's buffers took, where they were placed ahead.
  virtual std::optional<Bytes> arena(RankIndex) const { return std::nullopt; }
  /// Returns how long the step took when nothing recorded when its tasks begin and end; nothing where that costs nothing.
  virtual std::optional<Seconds> undated_step() const { return std::nullopt; }
  /// Returns what the step ran on, and what it was launched as: after `execute`.
  virtual std::string description() const = 0;
};

/// Returns "1 CUDA graph (full, 20 nodes)", as a description has it.
std::string text_of(const GraphCount& count, GraphScope scope);

/// Throws std::runtime_error, one sentence, where CUDA graphs are asked for and there are none.
void refuse_graphs_on_host(const ExecutionChoice& choice);

/// Before it is lowered, as it may be too large for that. Throws InputError, placed at `file`.
void refuse_too_many_ranks(std::int64_t ranks, const std::string& file, const ExecutionChoice& choice);

/// Makes a site for all ranks of a DAG in this process. `dag` must stay where it is. Throws InputError, placed at `file`, where
/// the DAG is too large for the backend; std::runtime_error where there is no such backend.
std::unique_ptr<ExecutionSite> make_site(const ExecutionChoice& choice, const Dag& dag, const std::string& file);

}  // namespace tandem
