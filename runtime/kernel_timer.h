#pragma once

#include "runtime/dag/profile.h"

namespace tandem {

/// Measures kernels where a backend runs them.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// Times the kernel for about `budget`. Throws std::runtime_error when the kernel cannot run (memory, no such arithmetic).
  virtual Timing time(const TimedKernel& kernel, Seconds budget) = 0;
  /// Returns how often `time` runs a kernel that takes long however small the budget is, with what warms up and what chooses
  /// among algorithms.
  virtual int fewest_runs(const TimedKernel& kernel) const = 0;
};

}  // namespace tandem
