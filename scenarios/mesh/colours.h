#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tandem::scenarios {

/// Numbers for whatever is to be told apart, such as the initial colours of a `FoldInput`: the same parts have the same number,
/// others another one.
class Colours {
 public:
  std::uint64_t of(std::span<const std::uint64_t> parts) {
    const auto known = known_.find(parts);
    if (known != known_.end()) return known->second;
    return known_.emplace(std::vector(parts.begin(), parts.end()), known_.size()).first->second;
  }

 private:
  struct Less {
    using is_transparent = void;
    bool operator()(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) const {
      return std::ranges::lexicographical_compare(a, b);
    }
  };
  std::map<std::vector<std::uint64_t>, std::uint64_t, Less> known_;
};

}  // namespace tandem::scenarios
