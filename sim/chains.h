#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::sim {

/// Which kernels form chains: the second waits for nothing but the first, which runs before it on the same stream and has the
/// number before, and nothing else waits for the first; and so on. Nothing from outside happens in a chain, and nothing outside
/// notices what happens in it before its end. So a simulation may play it in one go, whose end is the only event: of the kernels
/// of deepseek-v3-2k seven out of eight are inside of one.
class Chains {
 public:
  Chains() = default;  ///< of no tasks
  explicit Chains(const Dag& dag);

  /// Returns whether the next task is the next kernel of this one's chain.
  bool goes_on(TaskId id) const { return goes_on_[id]; }
  /// Returns the last kernel of this one's chain.
  TaskId last(TaskId id) const {
    while (goes_on_[id]) ++id;
    return id;
  }

 private:
  std::vector<bool> goes_on_;  ///< by task
};

}  // namespace tandem::sim
