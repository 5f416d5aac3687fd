#pragma once

#include <array>
#include <cstdint>

#include "runtime/base/units.h"

namespace tandem::sim {

/// Philox4x32-10, a random number generator without a state (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
/// 2011, section 3.3): four random words of a counter and a key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Draws of one stream. Streams of a seed are independent of each other, whoever draws from them and in which order, so that
/// work shared among any number of threads has the same result.
class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  /// Draws a number in (0, 1).
  double uniform();
  /// Draws from the exponential distribution with `rate` per second; infinity where the rate is 0.
  Seconds exponential(double rate);
  /// Draws from the standard normal distribution.
  double normal();

 private:
  std::uint64_t seed_, stream_;
  std::uint64_t drawn_ = 0;
};

}  // namespace tandem::sim
