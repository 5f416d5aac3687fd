#include "runtime/base/order_statistics.h"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

namespace tandem {

double normal_share_below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

double normal_quantile(double p) { return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * p); }

LargestNormal largest_normal(std::size_t n) {
  if (n < 2) return {};
  constexpr double end = 9, step = 1.0 / 64;  // the density is smooth and gone at both ends: the rule converges geometrically
  constexpr double at_zero = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const auto count = static_cast<double>(n);
  double first = 0, second = 0;
  for (double z = -end; z <= end; z += step) {
    const double density = count * at_zero * std::exp(-z * z / 2) * std::exp((count - 1) * std::log1p(-normal_share_below(-z)));
    first += density * z * step;
    second += density * z * z * step;
  }
  return {first, std::sqrt(second - first * first)};
}

double deviation_of_range(double range, std::size_t n) { return range / (2 * largest_normal(n).mean); }

}  // namespace tandem
