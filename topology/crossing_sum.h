#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/network.h"

namespace tandem::topology {

/// `times` messages of which a part of `1 / parts` each takes a way.
struct Amount {
  std::uint32_t times = 1;
  std::uint32_t parts = 1;

  Amount split(std::uint32_t further) const { return {times, parts * further}; }
};

/// Adds up how often messages cross links. Where messages are split over several ways, all are counted in parts so small that
/// every link is crossed by a whole number of them.
class CrossingSum {
 public:
  void reserve(std::size_t crossings) { entries_.reserve(crossings); }
  void add(LinkId link, Amount amount) { entries_.push_back({link, amount}); }

  /// Returns the paths, sorted by link. `channels` are those of the messages counted; the result has more where they were split.
  Paths paths(Algorithm algorithm, std::uint32_t channels) const;

 private:
  struct Entry {
    LinkId link;
    Amount amount;
  };
  std::vector<Entry> entries_;
};

}  // namespace tandem::topology
