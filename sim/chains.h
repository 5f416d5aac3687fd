#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::sim {

/// Which kernels form chains: the second waits for nothing but the first, which runs before it on the same stream, and nothing
/// else waits for the first; and so on. Nothing from outside happens in a chain, and nothing outside notices what happens in it
/// before its end. So a simulation may play it in one go, whose end is the only event: of the kernels of deepseek-v3-2k seven out
/// of eight are inside of one.
class Chains {
 public:
  /// The DAG must outlive it.
  explicit Chains(const Dag& dag);

  /// Returns the kernel that comes after this one in its chain; no_id where none does.
  TaskId next(TaskId id) const { return goes_on_[id] ? dag_.graph.successors(id).front() : no_id; }

 private:
  const Dag& dag_;
  std::vector<bool> goes_on_;  ///< by task
};

}  // namespace tandem::sim
