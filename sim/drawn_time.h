#pragma once

#include <span>

#include "runtime/base/units.h"

namespace tandem::sim {

/// The distribution that drawn times come from: a lognormal, moved so that it has their mean, variance and skewness. Of what is
/// the latest of many, as the end of a pipeline's or of tensor-parallel ranks' step, a lognormal by mean and variance alone has
/// too short a tail. Sample moments are of finite draws: the skewness is never below that of a lognormal that is not moved, c (3
/// + c^2) with c the coefficient of variation, so that times are positive. Equal times are a constant.
class DrawnTime {
 public:
  /// At least one time, none negative.
  explicit DrawnTime(std::span<const Seconds> times);

  Seconds mean() const { return mean_; }
  Seconds deviation() const { return deviation_; }
  /// Returns the time at `z`, of a standard normal value.
  Seconds at(double z) const;

 private:
  Seconds mean_ = 0, deviation_ = 0;
  double shape_ = 0;  ///< standard deviation of the logarithm
};

}  // namespace tandem::sim
