#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>

#include "sim/kernel_cost.h"

namespace tandem::sim {

/// Fits launch + bytes / memory to the kernels' medians, with the least squares of relative errors and neither term negative.
Roofline fitted_line(std::span<const MeasuredKernel> kernels);

/// Returns the upper quartile of the rates, once `launch` is taken off, of the third of the kernels with most FLOPs: some of the
/// others are bound by memory. There must be kernels with FLOPs.
FlopsPerSecond fitted_rate(std::span<const MeasuredKernel> kernels, Seconds launch);

/// Returns the median rate of the bytes of memory-bound kernels, taken in the same way.
BytesPerSecond fitted_bandwidth(std::span<const MeasuredKernel> kernels, Seconds launch);

/// Holds what measured kernels say of those that were not measured. Where they say nothing, the stated device's peaks and
/// efficiencies stand.
class FittedDevice {
 public:
  FittedDevice(const Device& stated, std::span<const MeasuredKernel> measured);

  /// launch: the shortest kernel. Arithmetic: `fitted_rate` of all kernels of the kind and type. Memory: `fitted_bandwidth` of
  /// all memory-bound kernels.
  Roofline roofline(OpClass op_class, DType math) const;
  /// Fits the roofline of one family alone. Unless it is memory-bound, memory is the device's, and so is launch, unless the
  /// family's shortest kernel is little longer: then it is what that takes beyond its work.
  Roofline roofline_of_family(std::span<const MeasuredKernel> kernels) const;

 private:
  Device stated_;  ///< without what was measured
  std::optional<Seconds> launch_;
  std::optional<BytesPerSecond> memory_;
  std::map<std::pair<OpClass, DType>, FlopsPerSecond> rates_;
};

}  // namespace tandem::sim
