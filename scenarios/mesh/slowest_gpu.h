#pragma once

#include <cstddef>

namespace tandem::scenarios {

/// Healthy GPUs of one model differ in speed: chips need different power for one clock, and all have the same limit. A
/// synchronous step goes at the pace of the slowest. Returns the speed of the slowest, over the mean one, among `gpus` whose
/// speeds are normally distributed with standard deviation `spread`: one minus spread times the expected largest of so many
/// standard normal values, for which Blom's approximation stands, the quantile at (n - 0.375) / (n + 0.25).
double slowest_of(std::size_t gpus, double spread);

}  // namespace tandem::scenarios
