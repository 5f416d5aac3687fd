#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tandem {

/// Counters that are counted up, then down to zero, such as of what each task of millions waits for. Nearly all stay small: a
/// counter is a byte, and how often it went past 256 is kept apart.
class Countdowns {
 public:
  explicit Countdowns(std::size_t count) : bytes_(count, 0) {}

  void add_one(std::size_t at) {
    if (++bytes_[at] == 0) ++rounds_[at];
  }
  /// Takes one away, which must be there. Returns whether none is left.
  bool count_down(std::size_t at) {
    if (bytes_[at]-- == 0) take_round(at);
    return is_zero(at);
  }
  bool is_zero(std::size_t at) const { return bytes_[at] == 0 && (rounds_.empty() || !rounds_.contains(at)); }

  /// Where the bytes lie, for the processor to fetch (fetch_ahead.h).
  const std::uint8_t* data() const { return bytes_.data(); }

 private:
  std::vector<std::uint8_t> bytes_;
  std::unordered_map<std::size_t, std::size_t> rounds_;  ///< of 256, where there are any

  void take_round(std::size_t at) {
    const auto round = rounds_.find(at);
    if (--round->second == 0) rounds_.erase(round);
  }
};

}  // namespace tandem
