#pragma once

#include "runtime/profile.h"

namespace tandem {

/// Measures kernels where a backend runs them.
class KernelTimer {
 public:
  virtual ~KernelTimer() = default;
  /// Spends about `budget` on it. Throws std::runtime_error when the kernel cannot run (memory, no such arithmetic).
  virtual Timing time(const TimedKernel& kernel, Seconds budget) = 0;
};

/// Measures collectives among the ranks of a backend.
class CollectiveTimer {
 public:
  virtual ~CollectiveTimer() = default;
  virtual std::vector<std::int32_t> members() const = 0;  ///< the sizes of communicators that can be had
  /// `bytes` as in `Group::bytes`. Spends about `budget` on it.
  virtual Timing time(OpKind op, std::int32_t members, Bytes bytes, Seconds budget) = 0;
};

}  // namespace tandem
