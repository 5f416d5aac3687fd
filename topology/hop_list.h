#pragma once

#include <utility>
#include <vector>

#include "topology/layouts.h"

namespace tandem::topology {

/// Keeps the hops of one algorithm where they are asked for.
class HopList {
 public:
  HopList(std::span<const std::uint32_t> members, Detail detail) : members_(members), wanted_(detail == Detail::hops) {}

  bool wanted() const { return wanted_; }

  /// `hop` is from GPU to GPU, and without crossings: `cross(sum)` adds those of each of its parts.
  template <typename Cross>
  void add(Hop hop, const Cross& cross) {
    if (!wanted_) return;
    CrossingSum sum;
    cross(sum);
    add(std::move(hop), sum);
  }

  std::vector<Hop> take() && { return std::move(hops_); }

 private:
  std::span<const std::uint32_t> members_;
  bool wanted_;
  std::vector<Hop> hops_;

  void add(Hop hop, const CrossingSum& sum);
};

}  // namespace tandem::topology
