#pragma once

#include <optional>
#include <vector>

#include "runtime/dag/dag.h"
#include "sim/kernel_model.h"

namespace tandem::sim {

/// The parts of a kernel's time on its device: total = launch + max(computing, moving).
struct KernelTime {
  Seconds total = 0, launch = 0;
  Seconds computing = 0;  ///< by multiprocessors: arithmetic, and whatever their tiles cost beside it
  Seconds moving = 0;     ///< by memory
};

/// Says how long the kernels of a DAG take on their ranks' devices, by what was measured there (`KernelModel`), else as
/// `kernel_time` says. On a host whose bandwidth is not known, kernels take what was measured. Each of `Dag::kernels` is computed
/// once. The DAG must outlive it.
class KernelTimes {
 public:
  explicit KernelTimes(const Dag& dag);
  KernelTimes(const KernelTimes&) = delete;
  KernelTimes& operator=(const KernelTimes&) = delete;

  /// Returns the time of a compute task.
  Seconds of(TaskId id) const { return parts_of(id).total; }
  const KernelTime& parts_of(TaskId id) const {
    std::optional<KernelTime>& time = known(id).time;
    return time ? *time : time.emplace(computed(id));
  }
  /// Returns what that time is made of on a device of speed 1; for a kernel that was measured, what its likes are made of.
  Roofline roofline_of(TaskId id) const;
  /// Returns the time at full peaks, which no kernel beats unless it was measured to.
  Seconds lower_bound_of(TaskId id) const;

 private:
  /// Of a kernel, each when somebody first asks: a device's bounds are known where its speeds are not.
  struct Known {
    std::optional<KernelTime> time = {};
    std::optional<Seconds> lower_bound = {};
  };

  const Dag& dag_;
  std::vector<std::optional<KernelModel>> models_;  ///< by device; none where nothing was measured
  mutable std::vector<Known> known_;                ///< by kernel

  Known& known(TaskId id) const { return known_[dag_.tasks[id].kernel]; }
  KernelTime computed(TaskId id) const;
};

}  // namespace tandem::sim
