#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem {

/// The real contents of every buffer of a DAG, for the host backend: fp32, or int32 for token ids. Each base buffer has memory of
/// its own for the whole step.
///
/// Before the step it holds what initial_contents.h says, and NaN elsewhere, so that what reads too early shows.
class HostMemory {
 public:
  HostMemory(const Dag& dag, std::uint64_t seed);
  /// Holds only those base buffers that are wanted, filled with NaN.
  HostMemory(const Dag& dag, const std::function<bool(const Buffer&)>& wanted);

  HostTensor tensor(BufferId id) const;
  const Dag& dag() const { return *dag_; }

 private:
  const Dag* dag_;
  std::vector<std::unique_ptr<float[]>> storage_;  ///< by base buffer; empty for views
};

}  // namespace tandem
