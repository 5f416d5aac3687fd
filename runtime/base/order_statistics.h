#pragma once

#include <cstddef>

namespace tandem {

/// The largest of `n` independent standard normal values.
struct LargestNormal {
  double mean = 0, deviation = 1;
};

/// Integrates by the trapezoidal rule over the density n phi(z) Phi(z)^(n - 1), which agrees with the published values (Teichroew
/// 1956, Annals of Mathematical Statistics 27(2); n = 8: 1.42360, n = 100: 2.50759) to all their digits. n >= 1.
LargestNormal largest_normal(std::size_t n);

/// Returns Phi or its inverse; `p` in (0, 1).
double normal_share_below(double z);
double normal_quantile(double p);

/// Estimates the standard deviation of `n` normal values of which only the range is known: the expected range is twice the
/// expected largest deviation (Tippett 1925, Biometrika 17). n >= 2.
double deviation_of_range(double range, std::size_t n);

}  // namespace tandem
