#pragma once

#include <memory>
#include <vector>

#include "runtime/dag.h"

namespace tandem {

/// The real contents of every buffer of a DAG, for the host backend: fp32, or int32 for token ids. Each base buffer has memory of
/// its own for the whole step.
///
/// Before the step: parameters hold values that depend on the seed, the tensor's name and the element's place in the *unsharded*
/// tensor alone (see `InitialParameter`), so that differently sharded DAGs start from the same model; likewise tokens and
/// targets, from sequence and position. Adam's master copies equal their parameters, its moments are those of a run under way. A
/// parameter that the step all-gathers before it uses it holds only the rank's own slice. Everything else is NaN, so that what
/// reads too early shows.
class HostMemory {
 public:
  HostMemory(const Dag& dag, std::uint64_t seed);

  HostTensor tensor(BufferId id) const;
  const Dag& dag() const { return *dag_; }

 private:
  const Dag* dag_;
  std::vector<std::unique_ptr<float[]>> storage_;  ///< by base buffer; empty for views
};

}  // namespace tandem
