#pragma once

#include <optional>
#include <unordered_set>
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
/// `kernel_time` says. On a host whose bandwidth is not known, kernels take what was measured. Each distinct kernel is computed
/// once, and looked for once for each task. The DAG must outlive it.
class KernelTimes {
 public:
  explicit KernelTimes(const Dag& dag);
  KernelTimes(const KernelTimes&) = delete;
  KernelTimes& operator=(const KernelTimes&) = delete;

  /// Returns the time of a compute task.
  Seconds of(TaskId id) const { return parts_of(id).total; }
  const KernelTime& parts_of(TaskId id) const;
  /// Returns what that time is made of on a device of speed 1; for a kernel that was measured, what its likes are made of.
  Roofline roofline_of(TaskId id) const;
  /// Returns the time at full peaks, which no kernel beats unless it was measured to.
  Seconds lower_bound_of(TaskId id) const;

 private:
  /// A task that stands for all that compute the same on the same device.
  struct Known {
    TaskId task;
    // Each when somebody first asks: a device's bounds are known where its speeds are not.
    mutable std::optional<KernelTime> time = {};
    mutable std::optional<Seconds> lower_bound = {};
  };
  struct Hash {
    const Dag& dag;
    std::size_t operator()(const Known& known) const;
  };
  struct Same {
    const Dag& dag;
    bool operator()(const Known& a, const Known& b) const;
  };

  const Dag& dag_;
  std::vector<std::optional<KernelModel>> models_;  ///< by device; none where nothing was measured
  mutable std::unordered_set<Known, Hash, Same> known_;
  mutable std::vector<const Known*> of_task_;  ///< null where nobody has asked yet

  const Known& known(TaskId id) const;
  KernelTime computed(TaskId id) const;
};

}  // namespace tandem::sim
