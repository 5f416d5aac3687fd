#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace tandem::sim {

/// Random numbers that are functions of what they are for: no state, so that neither the order in which they are asked for nor
/// who asks changes any. The key's words go one after the other through the finalizer of SplitMix64 (Steele, Lea, Flood 2014,
/// "Fast splittable pseudorandom number generators", OOPSLA).
class RandomKey {
 public:
  RandomKey(std::initializer_list<std::uint64_t> words) {
    for (const std::uint64_t word : words) *this = with(word);
  }
  RandomKey with(std::uint64_t word) const { return RandomKey(mixed(state_ ^ mixed(word))); }

  /// Returns a number in (0, 1).
  double uniform() const { return to_unit(state_); }
  /// Returns a standard normal number (Box and Muller 1958).
  double normal() const {
    return std::sqrt(-2 * std::log(to_unit(state_))) * std::cos(2 * std::numbers::pi * to_unit(mixed(state_)));
  }
  /// Returns true only where the standard normal number is below `z`, and mostly where it is. Costs less than `normal`. With u
  /// and v uniform, that is sqrt(-2 log u) cos(2 pi v): at most the root, where 1 + x + x^2/2 + x^3/6 < e^x for x = z^2 / 2, and
  /// below 0 for v between 1/4 and 3/4.
  bool normal_is_below(double z) const {
    if (!(z > 0)) return false;
    const double x = z * z / 2;
    return to_unit(state_) * (1 + x * (1 + x * (0.5 + x / 6))) > 1 || std::abs(to_unit(mixed(state_)) - 0.5) < 0.25;
  }

 private:
  std::uint64_t state_ = 0;

  explicit RandomKey(std::uint64_t state) : state_(state) {}
  static std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  static double to_unit(std::uint64_t x) { return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53; }
};

}  // namespace tandem::sim
