#pragma once

#include "runtime/dag/profile.h"

namespace tandem {

/// Measures kernels where a backend runs them.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// Times the kernel for about `budget`. Throws std::runtime_error when the kernel cannot run (memory, no such arithmetic).
  virtual Timing time(const TimedKernel& kernel, Seconds budget) = 0;
  /// Returns how often `time` runs a kernel however small the budget is, what warms up included.
  virtual int fewest_runs() const = 0;
};

}  // namespace tandem
