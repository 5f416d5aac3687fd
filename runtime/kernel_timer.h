#pragma once

#include <vector>

#include "runtime/ops/operation.h"

namespace tandem {

/// One kernel with the operands it is to be timed on.
struct TimedKernel {
  OpKind op = OpKind::gemm;
  std::vector<OperandType> operands;  ///< in the operation's order
  OpAttributes attributes;
};

/// Of repeated runs, caches as cold as a training step leaves them: the operands of one run are not those of the last.
struct Timing {
  Seconds median = 0, lowest = 0, highest = 0;
  int samples = 0;
};

/// Measures kernels where a backend runs them.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// Spends about `budget` on it. Throws std::runtime_error when the kernel cannot run (memory, no such arithmetic).
  virtual Timing time(const TimedKernel& kernel, Seconds budget) = 0;
};

}  // namespace tandem
