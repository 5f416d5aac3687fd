#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/dag/ids.h"

namespace tandem::sim {

/// Dates of which each lane has one at the most, the earliest first, and those of one instant by task. None is negative. A lane's
/// date may change: a heap that knows where each lane's is.
class LaneDates {
 public:
  struct Date {
    Seconds at = 0;
    TaskId task = 0;
    std::uint32_t lane = 0;
  };

  explicit LaneDates(std::size_t lanes) : place_(lanes, no_id) {}

  bool empty() const { return heap_.empty(); }
  const Date& first() const { return heap_.front(); }
  /// Returns some of the next, the first of all among them.
  std::span<const Date> next(std::size_t most) const { return std::span(heap_).first(std::min(most, heap_.size())); }
  /// Sets the date of its lane, in place of the one that it has.
  void set(const Date& date);
  void remove(std::uint32_t lane);

 private:
  std::vector<Date> heap_;
  std::vector<std::uint32_t> place_;  ///< by lane, in the heap; no_id: it has no date

  void put(const Date& date, std::size_t place);
  void rise(const Date& date, std::size_t place);
  void sink(const Date& date, std::size_t place);
};

}  // namespace tandem::sim
