#pragma once

#include <map>
#include <optional>
#include <vector>

#include "runtime/dag.h"
#include "sim/kernel_model.h"

namespace tandem {

/// How long the kernels of a DAG take on their ranks' devices: by what was measured there (`KernelModel`), else by roofline
/// (`kernel_time`). The DAG must outlive it.
class KernelTimes {
 public:
  explicit KernelTimes(const Dag& dag);

  /// Of a task that is no communication.
  Seconds of(TaskId id) const;
  /// What that is made of, on a device of speed 1: of a kernel that was measured, what its likes are made of.
  Roofline roofline_of(TaskId id) const;
  /// No kernel is faster than at full peaks, unless it was measured to be.
  Seconds lower_bound_of(TaskId id) const;

 private:
  const Dag& dag_;
  std::vector<std::optional<KernelModel>> models_;  ///< by device; none where nothing was measured
};

}  // namespace tandem
