#include "sim/drawn_time.h"

#include <algorithm>
#include <cmath>

namespace tandem::sim {
namespace {

/// Returns w = exp(s^2) of a lognormal with this skewness, (w + 2) sqrt(w - 1): the cubic's one real root.
double squared_shape(double skewness) {
  const double half = 1 + skewness * skewness / 2, root = skewness * std::sqrt(1 + skewness * skewness / 4);
  return std::cbrt(half + root) + std::cbrt(half - root) - 1;
}

}  // namespace

DrawnTime::DrawnTime(std::span<const Seconds> times) {
  const auto n = static_cast<double>(times.size());
  for (const Seconds time : times) mean_ += time / n;
  if (std::ranges::all_of(times, [&](Seconds time) { return time == times.front(); })) {
    mean_ = times.front();
    return;
  }
  double squares = 0, cubes = 0;
  for (const Seconds time : times) {
    squares += (time - mean_) * (time - mean_) / n;
    cubes += (time - mean_) * (time - mean_) * (time - mean_) / n;
  }
  deviation_ = std::sqrt(squares * n / (n - 1));
  const double variation = deviation_ / mean_, least = variation * (3 + variation * variation);
  shape_ = std::sqrt(std::log(squared_shape(std::max(least, cubes / std::pow(squares, 1.5)))));
}

Seconds DrawnTime::at(double z) const {
  if (deviation_ == 0) return mean_;
  const double variance = shape_ * shape_;
  return mean_ + deviation_ * std::expm1(shape_ * z - variance / 2) / std::sqrt(std::expm1(variance));
}

}  // namespace tandem::sim
