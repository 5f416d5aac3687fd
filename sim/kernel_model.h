#pragma once

#include <map>
#include <optional>
#include <vector>

#include "runtime/dag/device.h"
#include "sim/kernel_family.h"
#include "sim/kernel_fit.h"

namespace tandem::sim {

/// Says how long kernels take on a device, by what was measured on it (`Device::measured`), all over its speed:
///
/// 1. A kernel that was measured takes its median.
/// 2. Others of a measured family lie between bounds that each measured kernel i of the family sets. With x the kernel's size
///    (`size_of`) and t its time,
///      t(x) >= t_i * product over dimensions d of min(1, x_d / x_i,d)      a part of the work takes at least that part of the
///      time t(x) <= t_i * product over dimensions d of max(1, x_d / x_i,d)      so many times the work take at most so many
///      times as long
///    for a kernel's rate does not fall as it grows. Between the largest lower and the smallest upper bound the family's own
///    roofline decides (`FittedDevice::roofline_of_family`). Where measurements contradict each other the bounds cross, and their
///    geometric mean is taken.
/// 3. A family that was not measured has the roofline of the fitted device.
///
/// So times are continuous in every dimension, never fall as one grows, and meet the measured ones wherever these keep the bounds
/// themselves. Where they do not (noise; a shape that fills the device badly), only the measured shape has its own time.
class KernelModel {
 public:
  explicit KernelModel(const Device& device);

  Seconds time(const TimedKernel& kernel) const;
  /// Returns the time of a kernel that was measured itself; nothing of others.
  std::optional<Seconds> measured(const TimedKernel& kernel) const;
  /// Returns the roofline that decides where bounds leave room: that of the kernel's family, or of the fitted device.
  Roofline roofline(const TimedKernel& kernel) const;

 private:
  struct Point {
    std::vector<double> size;
    Seconds time;
  };
  struct Family {
    Roofline roofline;
    std::vector<Point> points;
  };

  FittedDevice fitted_;
  double speed_;
  std::map<KernelKey, Seconds> measured_;
  std::map<KernelFamily, Family> families_;
  mutable std::map<KernelKey, Seconds> known_;  ///< what was interpolated before: a DAG's kernels are few, its tasks many

  Seconds unmeasured(const TimedKernel& kernel) const;
  static Seconds interpolated(const Family& family, const TimedKernel& kernel);
};

}  // namespace tandem::sim
